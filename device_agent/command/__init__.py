"""The sub-commands of a device: agent, readings, status."""
