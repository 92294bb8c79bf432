"""The sub-commands of the cloud: cloud, lander, windows, globals."""
