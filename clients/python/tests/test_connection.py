"""A connection with a server that a test plays, line by line."""

import asyncio
import contextlib
import json
import socket
import threading
import unittest

from codex_embed import approvals, events
from codex_embed.approvals import allow, allow_all, allow_with_amendment, deny, encode, result
from codex_embed.backoff import Backoff
from codex_embed.connection import Options, connect
from codex_embed.errors import CallError, ClosedError, LateError, RefusedError
from codex_embed.feed import Events
from codex_embed.registry import Registry
from codex_embed.state import State
from codex_embed.transcript import MAX_LINE_BYTES, Noise, Told, Transcript

COMMAND = "item/commandExecution/requestApproval"


class Server:
    """The server's side, which answers the handshake by itself."""

    async def connected(self, **options):
        near, far = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=near)
        self.reader, self.writer = await asyncio.open_connection(sock=far, limit=1 << 26)
        connecting = asyncio.ensure_future(connect(reader, writer, Options(**options)))
        hello = await self.read()
        assert hello["method"] == "initialize"
        self.write({"id": hello["id"], "result": {"userAgent": "codex/0.200.0"}})
        client = await connecting
        assert await self.read() == {"method": "initialized"}
        return client

    async def read(self):
        line = await asyncio.wait_for(self.reader.readline(), 20)
        return json.loads(line) if line else None

    def write(self, message):
        self.raw(json.dumps(message) + "\n")

    def raw(self, text):
        self.writer.write(text if isinstance(text, bytes) else text.encode())


class ConnectionTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = Server()
        self.clients = []

    async def asyncTearDown(self):
        self.server.writer.close()
        for client in self.clients:
            while await client.events.next() is not None:
                pass

    async def connected(self, **options):
        client = await self.server.connected(**options)
        self.clients.append(client)
        return client

    async def test_calls_are_answered_in_any_order(self):
        client = await self.connected()
        calls = [asyncio.ensure_future(client.call(method, {"of": method})) for method in "ab"]
        requests = [await self.server.read(), await self.server.read()]
        for request in reversed(requests):
            self.server.write({"id": request["id"], "result": request["params"]})
        self.assertEqual(await asyncio.gather(*calls), [{"of": "a"}, {"of": "b"}])

    async def test_a_typed_call_has_the_name_of_its_method(self):
        client = await self.connected()
        calling = asyncio.ensure_future(client.methods.thread_archive({"threadId": "t"}))
        request = await self.server.read()
        self.assertEqual((request["method"], request["params"]), ("thread/archive", {"threadId": "t"}))
        self.server.write({"id": request["id"], "result": {}})
        self.assertEqual(await calling, {})

    async def test_an_overloaded_server_is_asked_again_and_another_error_is_told(self):
        client = await self.connected()
        calling = asyncio.ensure_future(client.call("busy"))
        self.server.write({"id": (await self.server.read())["id"], "error": {"code": -32001, "message": "later"}})
        self.server.write({"id": (await self.server.read())["id"], "result": "done"})
        self.assertEqual(await calling, "done")
        wrong = asyncio.ensure_future(client.call("wrong"))
        self.server.write({"id": (await self.server.read())["id"], "error": {"code": -32600, "message": "no"}})
        with self.assertRaises(RefusedError) as caught:
            await wrong
        self.assertEqual((caught.exception.code, str(caught.exception)), (-32600, "wrong: no (code -32600)"))

    async def test_a_late_answer_and_a_second_one_are_to_nobody(self):
        client = await self.connected()
        with self.assertRaises(LateError):
            await client.call("slow", deadline=0.001)
        request = await self.server.read()
        for _ in range(2):
            self.server.write({"id": request["id"], "result": 1})
            self.assertRegex((await client.events.next()).text, "nobody")
        self.server.write({"id": "never asked", "result": 1})
        self.assertRegex((await client.events.next()).text, "never asked")
        calling = asyncio.ensure_future(client.call("fine"))
        self.server.write({"id": (await self.server.read())["id"], "result": 2})
        self.assertEqual(await calling, 2)

    async def test_a_call_can_be_cancelled(self):
        client = await self.connected()
        calling = asyncio.ensure_future(client.call("slow"))
        await self.server.read()
        calling.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await calling

    async def test_the_end_of_the_server_ends_all_calls_and_events(self):
        client = await self.connected()
        calling = asyncio.ensure_future(client.call("never"))
        await self.server.read()
        self.server.writer.close()
        with self.assertRaises(ClosedError):
            await calling
        self.assertIsNone(await client.events.next())
        self.assertTrue(client.is_closed)
        with self.assertRaises(ClosedError):
            await client.call("later")

    async def test_parameters_that_are_no_json_are_named(self):
        client = await self.connected()
        with self.assertRaisesRegex(CallError, "wrong: cannot write the parameters"):
            await client.call("wrong", {"x": object()})

    async def test_questions_wait_without_blocking_the_reader(self):
        decided = asyncio.Event()

        async def decide(_):
            await decided.wait()
            return allow()

        client = await self.connected(approvals=decide)
        self.server.write({"id": "q", "method": COMMAND, "params": {"threadId": "t"}})
        self.server.write({"method": "warning", "params": {"message": "goes on"}})
        self.assertIsInstance(await client.events.next(), events.Asked)
        self.assertEqual((await client.events.next()).message, "goes on")
        decided.set()
        self.assertEqual(await self.server.read(), {"id": "q", "result": {"decision": "accept"}})
        self.assertIsInstance(await client.events.next(), events.Resolved)

    async def test_a_question_has_one_answer_and_none_if_somebody_else_has_answered_it(self):
        decided = asyncio.Event()

        async def decide(question):
            if question.id != 9:
                await decided.wait()
            return allow()

        client = await self.connected(approvals=decide)
        for id in (7, 7, 8):
            self.server.write({"id": id, "method": COMMAND, "params": {"threadId": "t"}})
        self.server.write({"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": 8}})
        kinds = [type(await client.events.next()).__name__ for _ in range(3)]
        self.assertEqual(kinds, ["Asked", "Asked", "Resolved"])
        decided.set()
        self.assertEqual((await self.server.read())["id"], 7)
        self.server.write({"id": 9, "method": COMMAND, "params": {"threadId": "t"}})
        self.assertEqual((await self.server.read())["id"], 9)

    async def test_a_plain_function_waits_in_a_thread(self):
        decided = threading.Event()

        def decide(_):
            decided.wait(20)
            return allow()

        client = await self.connected(approvals=decide)
        self.server.write({"id": "q", "method": COMMAND, "params": {"threadId": "t"}})
        self.assertIsInstance(await client.events.next(), events.Asked)
        calling = asyncio.ensure_future(client.call("meanwhile"))
        self.server.write({"id": (await self.server.read())["id"], "result": 1})
        self.assertEqual(await calling, 1)
        decided.set()
        self.assertEqual(await self.server.read(), {"id": "q", "result": {"decision": "accept"}})

    async def test_nobody_a_mistake_a_late_and_an_odd_answer_mean_no(self):
        hangs = threading.Event()
        self.addCleanup(hangs.set)

        async def never(_):
            await asyncio.Event().wait()

        async def fails(_):
            raise ValueError("a mistake")

        async def cancels_itself(_):
            raise asyncio.CancelledError

        over = asyncio.Event()

        async def stays(_):
            while not over.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await over.wait()

        handlers = [
            None,
            lambda _: 1 / 0,
            fails,
            cancels_itself,
            never,
            stays,
            lambda _: hangs.wait(20),
            lambda _: None,
            lambda _: "yes",
            lambda _: allow_with_amendment([]),
        ]
        for handler in handlers:
            self.server = Server()
            client = await self.connected(approvals=handler, approval_deadline=0.05)
            self.server.write({"id": 1, "method": COMMAND, "params": {"threadId": "t"}})
            self.assertEqual(await self.server.read(), {"id": 1, "result": {"decision": "decline"}}, handler)
            self.server.writer.close()
            while await client.events.next() is not None:
                pass
        over.set()
        await asyncio.sleep(0)

    async def test_a_result_that_is_no_json_is_a_denial(self):
        client = await self.connected(approvals=lambda _: result({1, 2}))
        self.server.write({"id": 1, "method": COMMAND, "params": {"threadId": "t"}})
        self.assertEqual(await self.server.read(), {"id": 1, "result": {"decision": "decline"}})
        self.assertIsInstance(await client.events.next(), events.Asked)
        self.assertIsInstance(await client.events.next(), events.Note)

    async def test_noise_is_tolerated_up_to_a_bound(self):
        client = await self.connected()
        self.server.raw("npm warn something is old\n")
        self.assertIsInstance(await client.events.next(), events.Note)
        self.assertFalse(client.is_closed)
        self.server.raw(("x" * 1024 + "\n") * 70)
        while await client.events.next() is not None:
            pass
        self.assertTrue(client.is_closed)

    async def test_a_line_of_40_mb_is_one_note_and_the_rest_goes_on(self):
        client = await self.connected()
        for _ in range(40):
            self.server.raw(b"x" * (1 << 20))
            await self.server.writer.drain()
        self.server.raw(b"\n")
        self.server.write({"method": "warning", "params": {"message": "goes on"}})
        self.assertEqual((await client.events.next()).text, f"a line is too long ({40 << 20} bytes)")
        self.assertEqual((await client.events.next()).message, "goes on")

    async def test_a_number_that_goes_back_is_one_note(self):
        registry = Registry()
        registry.subscribed("t", {"logId": "log", "seq": 3, "reset": True})
        client = await self.connected(registry=registry)
        for seq in (4, 4, 2, 5):
            message = {"method": "turn/started", "params": {"threadId": "t", "turn": {"id": str(seq)}}, "seq": seq}
            self.server.write(message)
        kinds = [type(await client.events.next()) for _ in range(4)]
        self.assertEqual(kinds, [events.TurnStarted, events.Note, events.Note, events.TurnStarted])

    async def test_a_turn_that_a_new_server_does_not_run_ends_before_the_next_event(self):
        registry = Registry()
        registry.follow("t")
        client = await self.connected(registry=registry)
        registry.subscribed("t", {"logId": "log", "seq": 5, "reset": False, "thread": {"status": {"type": "idle"}}})
        self.server.write({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u"}}, "seq": 4})
        self.server.write({"method": "thread/caughtUp", "params": {"threadId": "t"}})
        self.server.write({"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "v"}}, "seq": 6})
        told = [await client.events.next() for _ in range(4)]
        kinds = [events.TurnStarted, events.Other, events.TurnEnded, events.TurnStarted]
        self.assertEqual([type(event) for event in told], kinds)
        self.assertEqual((told[2].turn, told[2].status), ("u", "interrupted"))

    async def test_closing_ends_the_input_of_the_server(self):
        client = await self.connected()
        client.close()
        self.assertIsNone(await self.server.read())

    async def test_a_server_that_does_not_greet_is_given_up(self):
        near, far = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=near)
        self.server.reader, self.server.writer = await asyncio.open_connection(sock=far)
        with self.assertRaisesRegex(LateError, "initialize: no answer within 0.01 s"):
            await connect(reader, writer, Options(deadline=0.01))


class PureTest(unittest.TestCase):
    def test_decisions_are_spelled_as_in_the_question(self):
        elicitation = "mcpServer/elicitation/request"
        cases = [
            (COMMAND, allow(), {"decision": "accept"}),
            (COMMAND, approvals.cancel(), {"decision": "cancel"}),
            (
                COMMAND,
                allow_with_amendment(["npm"]),
                {"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["npm"]}}},
            ),
            ("execCommandApproval", approvals.allow_for_session(), {"decision": "approved_for_session"}),
            ("applyPatchApproval", deny(), {"decision": "denied"}),
            (elicitation, allow_all(approvals.Question(1, elicitation, None)), {"action": "decline", "content": None}),
            ("item/permissions/requestApproval", allow(), {"permissions": {}, "scope": "turn"}),
            ("item/tool/call", result({"success": True}), {"success": True}),
            (
                "item/tool/call",
                approvals.tool_result("seven"),
                {"contentItems": [{"type": "inputText", "text": "seven"}], "success": True},
            ),
            (
                "item/permissions/requestApproval",
                approvals.grant(approvals.Question(1, "", {"permissions": {"network": {}}}), for_session=True),
                {"permissions": {"network": {}}, "scope": "session"},
            ),
        ]
        for method, decision, expected in cases:
            self.assertEqual(encode(method, decision), {"result": expected})
        for method in ("from/the/future", "item/tool/call"):
            self.assertEqual(encode(method, allow())["error"]["code"], -32601)

    def test_a_character_may_be_cut_in_the_middle(self):
        line = '{"method":"warning","params":{"message":"ä€😀"}}\n'.encode()
        for cut in range(len(line)):
            transcript = Transcript()
            messages = transcript.push(line[:cut]) + transcript.push(line[cut:])
            self.assertEqual(messages, [Told(events.Warning("", "ä€😀"))], cut)

    def test_odd_lines_cost_a_note_each(self):
        lines = [
            b"starting up...",
            b"[1]",
            b'{"id":{}}',
            b"{}",
            b"\xff\xfe",
            b'{"method":"warning","params":{"message":"\\ud800"}}',
            b'{"method":"warning","params":{"n":NaN}}',
            b'{"method":"item/created","params":{"item":{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}}}",
            b'{"method":"x","params":' + b"9" * 10_000 + b"}",
        ]
        read = Transcript().push(b"".join(line + b"\n" for line in lines))
        self.assertEqual([type(message) for message in read], [Noise] * len(lines))
        deep = b'{"method":"item/created","params":{"item":{"content":' + b"[" * 900 + b"]" * 900 + b"}}}\n"
        self.assertEqual(len(Transcript().push(deep)), 1)

    def test_a_line_that_is_too_long_is_not_kept(self):
        transcript = Transcript()
        for _ in range(40):
            self.assertEqual(transcript.push(b"x" * (1 << 20)), [])
            self.assertLessEqual(transcript.kept, MAX_LINE_BYTES)
        self.assertEqual(transcript.kept, 0)
        messages = transcript.push(b'\n{"id":1,"result":1}\n')
        self.assertEqual(messages[0], Noise(40 << 20, "a line is too long"))
        self.assertEqual(len(messages), 2)

    def test_a_program_that_sleeps_costs_little_and_misses_no_end(self):
        async def run():
            queue = Events()
            for _ in range(200_000):
                queue.push(events.Delta("t", "u", "a", "message", 0, "some forty bytes of an answer", events.Teller.ITEMS))
            queue.push(events.TurnEnded("t", "u", "completed", None))
            queue.close()
            self.assertLessEqual(len((await queue.next()).text), 4 << 20)
            self.assertIsInstance(await queue.next(), events.TurnEnded)
            self.assertIsInstance(await queue.next(), events.Note)
            self.assertIsNone(await queue.next())

        asyncio.run(run())

    def test_an_item_of_a_later_release_is_kept_as_it_is(self):
        state = State()
        item = {"type": "fromTheFuture", "id": "x", "n": [1]}
        state.apply(events.ItemCompleted("t", "u", item, events.Teller.ITEMS))
        self.assertEqual(state.to_value()["threads"]["t"]["turns"][0]["items"], [{"complete": True, "item": item}])

    def test_waits_grow_to_their_end_and_restart_after_a_healthy_minute(self):
        backoff, waits = Backoff(), []
        while (step := backoff.next(0, 0)) is not None:
            waits.append(step[1])
        self.assertEqual(waits, [1, 2, 4, 8, 16, 30, 30, 30, 30, 30])
        self.assertEqual(backoff.next(60, 1), (1, 0.8))


if __name__ == "__main__":
    unittest.main()
