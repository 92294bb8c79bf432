"""What crosses MQTT, and every rule on which devices, landers, operators and simulations agree.

In the order in which a message passes them:

sizes, limits      how large a frame may be; every limit beyond which something is refused
checks             types, lengths and ranges of what strangers send
envelope, blocks   what every frame says; pane entries packed by column
sinks, acks        who holds panes, and what it says of each entry: taken, or not and why
frames             the kinds of frames: what devices, landers and operators say to each other
fencing, witness   who a device was before: the frames that ask and tell it, and what is known
kinds              the one table of frame kinds; `decode`
topics, shards     where a frame travels, who subscribes; which keys of a variable share a frame
admission          which well-formed frames every reader refuses, and why
fitting            which pane entries of a block a sink takes
greetings          which devices a lander tells that it is there
commands, repeating  what operators decided, and who repeats it when nobody else does
accepted           the outcome of a sink's messages
acceptance         what a lander takes, refuses and acknowledges
lake_columns       the columns that the lake's tables have of their own
window_rows        a row of a window, in a lake or a gateway; its columns are declared there, once
listening          a sink's clock, and since when it listens
owed               what retired devices still owe
spans, frontier    which windows hold a pane; up to when all panes of all live devices have come
status             tentative, final, revised: how a window row's status and revision follow
streams, inputs    ids of streams; digests of what a result was made from
"""
