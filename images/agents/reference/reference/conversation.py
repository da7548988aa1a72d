"""What the model is sent: instructions and request for ever, turns as long as there is room."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from reference.model import Message, Reply

ROOM = 240_000
"""Characters of a conversation, about 60,000 tokens; halved when the provider says that it is too long."""
SMALLEST = 2_000
STUB = "(dropped to save room; call the tool again if you need this)"


@dataclass
class Conversation:
    """Messages in the order they came, in groups that stay or go as a whole."""

    instructions: str
    request: str
    room: int = ROOM
    _turns: list[list[Message]] = field(default_factory=list)
    _dropped: int = 0

    def messages(self) -> list[Message]:
        """What to send now."""
        note = f"\n\n({self._dropped} earlier turns were dropped to save room.)" if self._dropped else ""
        return [
            {"role": "system", "content": self.instructions},
            {"role": "user", "content": self.request + note},
            *(message for turn in self._turns for message in turn),
        ]

    def reply(self, reply: Reply, results: list[str]) -> None:
        """Add a model's reply and the results of its calls."""
        said: Message = {"role": "assistant", "content": reply.text}
        if reply.calls:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    # What came back unreadable would be refused when it is sent again.
                    "function": {"name": call.name, "arguments": json.dumps({} if call.fault else call.args)},
                }
                for call in reply.calls
            ]
        else:
            said["content"] = reply.text or "(nothing)"
        answers = [
            {"role": "tool", "tool_call_id": call.id, "content": result}
            for call, result in zip(reply.calls, results, strict=True)
        ]
        self._turns.append([said, *answers])
        self._fit()

    def remind(self, text: str) -> None:
        """Answer a reply that called no tool."""
        self._turns[-1].append({"role": "user", "content": text})

    def halve(self) -> bool:
        """Make do with half of what there is; False when there is nothing left to drop."""
        before = self._size()
        self.room = max(SMALLEST, min(self.room, before) // 2)
        self._fit()
        return self._size() < before

    def _fit(self) -> None:
        """Past the room, drop down to half of it: what stays is then sent unchanged for many turns, which
        providers' caches reward. Results go first, oldest first, then whole turns, then the last results."""
        if self._size() <= self.room:
            return
        goal = self.room // 2
        for turn in self._turns[:-1]:
            if self._size() <= goal:
                return
            for message in turn:
                if message["role"] == "tool" and len(message["content"]) > len(STUB):
                    message["content"] = STUB
        while self._size() > goal and len(self._turns) > 1:
            del self._turns[0]
            self._dropped += 1
        for message in self._turns[-1] if self._turns else ():
            if self._size() > self.room and message["role"] == "tool":
                message["content"] = message["content"][: self.room // 8] + "\n" + STUB

    def _size(self) -> int:
        return sum(len(json.dumps(message)) for message in self.messages())
