"""Which readings can be taken back: all that is made from them must be able to do without.

>>> from lasp_edge import Program, folds, scans
>>> program = Program("water")
>>> litres = program.event("litres")
>>> flow = program.scan("flow", source=litres, scan=scans.differences(), per_device=True)
>>> keeps_all(program.plan(), "litres") is None
True
>>> lowest = program.window("lowest", source=litres, fold=folds.last(), size_s=60)
>>> keeps_all(program.plan(), "litres")
'window lowest cannot take a reading of litres back'
"""

from lasp_edge.language.plan import Plan


def keeps_all(plan: Plan, event: str) -> str | None:
    """Return why no reading of an event can be taken back; None where each can be."""
    cannot = f"cannot take a reading of {event} back"
    if plan.functions.handlers.get(event):
        return f"a handler {cannot}"
    for variable in plan.collections.get(event, ()):
        return f"variable {variable.name} {cannot}"
    made = {event, *(stream.name for stream in plan.streams.values() if event in stream.events)}
    windows = [window for window in plan.windows.values() if window.source.name in made]
    for window in windows:
        if not all(column.op.is_signed for column in window.fold.columns):
            return f"window {window.name} {cannot}"
    kept = any(not each.is_plain for each in windows if each.source.name == event)
    if kept or event in plan.evaluated_events or event in plan.item_streams:
        return None
    return f"nothing that can take a reading back is made from {event}"
