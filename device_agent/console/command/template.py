"""The texts of the files that `lasp-edge new` writes; NAME stands for the program's name.

The program is that of `lasp_edge.examples.machines`, the unit that of `lasp-edge service install`.
"""

from typing import Final

FLEET: Final = """\
# What the agent does, by the names of its options: lasp-edge agent --help
# To start it here, type: lasp-edge agent --config fleet.toml

# The variable `program` of NAME.py, which is looked up in the current directory first.
program = "NAME:program"
# The name of this machine. Each machine of the fleet has its own; all else may be the same.
device = "one"
# Where the broker is. On other machines: its name or address, such as mqtt://192.168.1.10
broker = "mqtt://127.0.0.1"
# What must survive a restart. It belongs to one device and one program.
data-dir = "data"
# Publish what changed at most every 10 seconds. 60 spares card and network; 1 shows all live.
interval = 10

# Where readings come from; add as many of these tables as you like.
[[source]]
# This machine itself: cpu, memory, load, network, temperature; those that NAME.py declares.
kind = "host"
# Seconds between two readings.
every = 1
# What stands on each reading, for keys of NAME.py, such as event.tags["room"].
with-tag = { room = "here" }
"""

COMPOSE: Final = """\
# A broker and two agents in containers. The image is made from a checkout of lasp-edge, once:
#   docker build --target device --tag lasp-edge:device PATH_OF_THE_CHECKOUT
# Then, here: docker compose up
services:
  broker:
    image: eclipse-mosquitto:2
    # Its own account, which may write nothing but its data.
    user: "1883:1883"
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    restart: unless-stopped
    # Reached from this machine only. It asks for no password: see README.md before you open it.
    ports: ["127.0.0.1:1883:1883"]
    volumes:
      - ./mosquitto.conf:/mosquitto/config/mosquitto.conf:ro
      - broker:/mosquitto/data
  one: &agent
    image: lasp-edge:device
    # What fleet.toml says, but for the broker and the place of the data, which differ in here.
    command:
      - agent
      - --config=fleet.toml
      - --device=one
      - --broker=mqtt://broker
      - --data-dir=/data
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    restart: unless-stopped
    depends_on: [broker]
    # Programs are found in the current directory.
    working_dir: /program
    volumes:
      - .:/program:ro
      - one:/data
  two:
    <<: *agent
    command:
      - agent
      - --config=fleet.toml
      - --device=two
      - --broker=mqtt://broker
      - --data-dir=/data
    volumes:
      - .:/program:ro
      - two:/data
# What survives `docker compose down`; `docker compose down --volumes` deletes it.
volumes:
  broker:
  one:
  two:
"""

BROKER: Final = """\
# The broker of compose.yaml. In its container all addresses are the compose network's.
listener 1883
# Whoever reaches it may read and write: compose.yaml lets only this machine and the agents.
allow_anonymous true
# No message of a fleet is longer.
message_size_limit 70000
# By default it drops what waits for an agent beyond 1,000 messages.
max_queued_messages 100000
# What is retained survives a restart.
persistence true
persistence_location /mosquitto/data/
log_dest stderr
log_type error
log_type warning
log_type notice
"""

README: Final = """\
# NAME

| file | what it is |
|---|---|
| `NAME.py` | the program: what is measured, and what is computed of it |
| `fleet.toml` | the agent of this machine: name, broker, sources |
| `lasp-edge-NAME.service` | the same agent as a unit for systemd |
| `compose.yaml`, `mosquitto.conf` | a broker and two agents in containers |

Check the program after each change, and run it in a virtual fleet that crashes:

    lasp-edge check NAME
    lasp-edge simulate NAME

Start a broker (`sudo apt install mosquitto`) and an agent, and look at what it knows:

    lasp-edge agent --config fleet.toml
    lasp-edge watch NAME --broker mqtt://127.0.0.1

If something does not work, this says what, and what to type:

    lasp-edge doctor --config fleet.toml

Another machine of the fleet needs this directory, another `device` in `fleet.toml`, and the name of
the broker there. The broker then has to accept connections from other machines: `lasp-edge broker
config NAME --device one --device two --dir /etc/mosquitto` writes its files, with a password for
each.

To start the agent with the machine:

    sudo cp lasp-edge-NAME.service /etc/systemd/system/
    sudo systemctl daemon-reload
    sudo systemctl enable --now lasp-edge-NAME
"""
