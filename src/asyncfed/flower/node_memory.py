"""What a node remembers between its tasks, in the state that its SuperNode keeps for a run.

    RecordDict
      "asyncfed.tickets"  ConfigRecord {"tickets": [int, ...]}     whose memory is here
      "asyncfed.memory"   ArrayRecord  {"TICKET/NAME": Array, ...}

A process is started for every message, so this is the only thing that lasts. It is gone when the SuperNode is: the node
then begins anew, and says so.
"""

from __future__ import annotations

from typing import cast

from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from asyncfed.flower.messages import pack_arrays
from asyncfed.live.wire import Part, PartType, decode_part
from asyncfed.uplinks.client_memory import ClientMemory

TICKETS, MEMORY = "asyncfed.tickets", "asyncfed.memory"


def load_memory(state: RecordDict) -> ClientMemory:
    """What the node remembers; nothing, if this is its first task."""
    memory = ClientMemory()
    tickets, arrays = state.get(TICKETS), state.get(MEMORY)
    if not isinstance(tickets, ConfigRecord) or not isinstance(arrays, ArrayRecord):
        return memory
    numbers = tickets["tickets"]
    memory.of_ticket = {int(ticket): {} for ticket in numbers} if isinstance(numbers, list) else {}
    for key, array in arrays.items():
        ticket, name = key.split("/", 1)
        part = Part(name, cast(PartType, array.dtype), tuple(array.shape))
        memory.of_ticket[int(ticket)][name] = decode_part(part, array.data)
    return memory


def save_memory(state: RecordDict, memory: ClientMemory) -> None:
    """Keep it for the next task."""
    state[TICKETS] = ConfigRecord({"tickets": list(memory.of_ticket)})
    named = {f"{ticket}/{name}": array for ticket, kept in memory.of_ticket.items() for name, array in kept.items()}
    state[MEMORY] = ArrayRecord(pack_arrays(named))
