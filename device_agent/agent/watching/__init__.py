"""An agent watched from outside: its health, its figures for Prometheus, and systemd's watchdog.

health, metrics, service_manager -> watching, which the process turns with its loop.
Nothing of it runs, or is imported, where nobody asked for it.
"""
