"""Who may write what in a fleet: rules for a broker.

access      who reads and writes which topics, made from the table of frame kinds
mosquitto   those rules as the files of a mosquitto broker
"""
