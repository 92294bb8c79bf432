"""Who may write what in a fleet: rules for a broker, and signatures.

access        who reads and writes which topics, made from the table of frame kinds
mosquitto     those rules as the files of a mosquitto broker
participants  the file that says who is in a fleet, and by which key each is known
signatures    signs frames and checks signatures, with Ed25519 (the extra `signed`)
"""
