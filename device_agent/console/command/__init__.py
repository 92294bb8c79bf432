"""The sub-commands of `lasp-edge` for devices and gateways, a module each."""
