"""Figures of a process for Prometheus, and the page where they are read.

exposition  metrics as text
page        a few lines of HTTP, answered by the process's own loop
"""
