"""Connections to servers that listen on sockets: the frames, the addresses, and the real program."""

import asyncio
import contextlib
import os
import unittest
from pathlib import Path

from codex_embed import events
from codex_embed.address import Address, parse
from codex_embed.dial import dial
from codex_embed.errors import StartError
from codex_embed.proof import Exchange
from codex_embed.supervisor import Listening, Supervisor
from codex_embed.websocket import Control, FrameReader, Opcode, Piece, WebSocket, frame
from server import ScriptedTest, needs_program, says


def told(opcode, text, is_last=True):
    """A frame of a server."""
    payload = text.encode()
    length = bytes((len(payload),)) if len(payload) < 126 else b"\x7e" + len(payload).to_bytes(2, "big")
    return bytes(((0x80 if is_last else 0) | opcode,)) + length + payload


class AddressTest(unittest.TestCase):
    def test_addresses_are_read_as_in_rust(self):
        self.assertEqual(parse("ws://127.0.0.1:7"), Address("ws", host="127.0.0.1", port=7))
        self.assertEqual(parse("tcp://localhost:7/"), Address("tcp", host="127.0.0.1", port=7))
        self.assertEqual(parse("tcp://[::1]:80"), Address("tcp", host="::1", port=80))
        self.assertEqual(parse("unix:///run/a b%20.sock"), Address("unix", "/run/a b%20.sock"))
        self.assertTrue(parse("unix://").path.endswith("/run/app-server.sock"))
        for text, hint in (
            ("std", "use unix://"),
            ("stdio://", "use unix://"),
            ("http://127.0.0.1:1", "use unix://"),
            ("grpc://127.0.0.1:1", "HTTP/2"),
            ("unix://run/x", "three slashes"),
            ("ws://example.org:80", "IP address"),
            ("ws://127.0.0.1", "IP address"),
            ("tcp://localhost:99999", "IP address"),
            ("tcp://[127.0.0.1]:1", "IP address"),
            ("ws://", "IP address"),
        ):
            with self.subTest(text), self.assertRaisesRegex(StartError, hint) as caught:
                parse(text)
            self.assertTrue(caught.exception.is_final)


class ProofTest(unittest.TestCase):
    def test_proofs_are_those_of_the_other_languages(self):
        exchange = Exchange("0123456789abcdef", "127.0.0.1:9", "a" * 64)
        server = "3f86427d36807ce9488589e2a174eafa123a54f4b6f5eab120e0c8fa2245d4d6"
        client = "c6be340cb77df88bb26f2e24ef2e33402c76d319e9e2d39ba249e3d6f08d757f"
        self.assertEqual(exchange.prove("b" * 64, f"{'0' * 64},{server}"), client)
        for nonce, proof in (("b" * 64, client), ("b" * 64, ""), ("b" * 64, None), ("c" * 64, server), (None, server)):
            with self.subTest(proof), self.assertRaisesRegex(ValueError, "did not prove"):
                exchange.prove(nonce, proof)


class StrangerTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_stranger_is_not_sent_the_token(self):
        heard = bytearray()

        async def listen(reader, writer):
            heard.extend(await reader.read(4096))
            writer.write(b'{"id":0,"result":{}}\n')
            writer.close()

        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        token = "a-token-for-tests-0123456789"
        for scheme in ("ws", "tcp"):
            with self.subTest(scheme), self.assertRaises(StartError):
                await dial(f"{scheme}://127.0.0.1:{port}", token=token)
        self.assertTrue(heard)
        self.assertNotIn(token.encode(), heard)
        server.close()


class FrameTest(unittest.TestCase):
    def test_frames_are_the_same_however_they_are_cut(self):
        long = "ä" * 200
        data = b"".join(
            (
                told(1, "one"),
                told(1, "two ", False),
                told(9, "there?"),
                told(0, "parts", False),
                told(0, ""),
                told(10, "a pong"),
                told(1, long),
                told(8, "\x03é"),
            )
        )
        for size in (1, 2, 3, 7, 100, len(data)):
            reader, messages, others = FrameReader(), [b""], []
            for at in range(0, len(data), size):
                for read in reader.push(data[at : at + size]):
                    if isinstance(read, Control):
                        others.append((read.opcode, read.data.decode()))
                        continue
                    messages[-1] += read.data
                    messages += [b""] if read.is_end else []
            self.assertEqual([message.decode() for message in messages], ["one", "two parts", long, ""], size)
            expected = [(Opcode.PING, "there?"), (Opcode.PONG, "a pong"), (Opcode.CLOSE, "\x03é")]
            self.assertEqual(others, expected, size)

    def test_frames_that_break_the_rules_are_refused(self):
        for data, expected in (
            (b"\xc1\0", "extension"),
            (b"\x81\x80", "masked"),
            (b"\x82\0", "neither text"),
            (b"\x80\0", "mixed"),
            (b"\x01\0\x81\0", "mixed"),
            (b"\x09\0", "control"),
            (b"\x89\x7e\0\x7e", "control"),
            (b"\x81\x7f" + b"\xff" * 8, "too long"),
        ):
            with self.subTest(data), self.assertRaisesRegex(ValueError, expected):
                list(FrameReader().push(data))

    def test_a_long_message_comes_in_pieces_and_is_not_kept(self):
        reader = FrameReader()
        self.assertEqual(list(reader.push(b"\x81\x7f" + (40 << 20).to_bytes(8, "big"))), [Piece(b"", False)])
        for megabyte in range(40):
            self.assertEqual(list(reader.push(b"x" * (1 << 20)))[0].is_end, megabyte == 39)

    def test_a_frame_of_a_client_is_masked_and_has_the_length_that_it_says(self):
        for length in (0, 125, 126, 65_535, 65_536):
            made = frame(Opcode.TEXT, b"x" * length)
            head = 2 if length < 126 else 4 if length < 65_536 else 10
            self.assertEqual((len(made), made[0], made[1] & 0x80), (head + 4 + length, 0x81, 0x80))
            mask = made[head : head + 4]
            self.assertTrue(all(byte ^ mask[at % 4] == 120 for at, byte in enumerate(made[head + 4 :])))


class WebSocketTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_ping_is_answered_and_a_frame_against_the_rules_ends_the_connection(self):
        peers = asyncio.Queue()
        server = await asyncio.start_server(lambda *streams: peers.put_nowait(streams), "127.0.0.1", 0)
        stream = WebSocket(*await asyncio.open_connection(*server.sockets[0].getsockname()))
        reader, writer = await asyncio.wait_for(peers.get(), 20)
        writer.write(told(9, "there?") + told(1, '{"a":', False) + told(0, "1}"))
        self.assertEqual(await asyncio.wait_for(stream.read(1000), 20), b'{"a":1}\n')
        head, mask, payload = await reader.readexactly(2), await reader.readexactly(4), await reader.readexactly(6)
        self.assertEqual(head, bytes((0x8A, 0x86)))
        self.assertEqual(bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload)), b"there?")
        writer.write(told(2, "binary"))
        self.assertEqual(await asyncio.wait_for(stream.read(1000), 20), b"")
        stream.close()
        self.assertEqual((await reader.readexactly(1))[0], 0x88, "it says good-bye")
        writer.close()
        server.close()

    async def test_a_peer_that_is_no_server_is_named_at_once(self):
        async def hang_up(_reader, writer):
            writer.write(b"220 mail\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        for scheme in ("ws", "tcp"):
            with self.assertRaisesRegex(StartError, f"cannot connect to {scheme}"):
                await dial(f"{scheme}://127.0.0.1:{port}", token="x")
        server.close()


@needs_program
class DialTest(ScriptedTest, unittest.IsolatedAsyncioTestCase):
    @contextlib.asynccontextmanager
    async def listening(self, answers):
        """The program, which listens on all kinds of addresses: these, and its token."""
        config = self.config(answers)
        wanted = [f"unix://{self.folder / 'socket'}", "ws://127.0.0.1:0", "tcp://127.0.0.1:0"]
        words = [word for override in config.config_overrides for word in ("-c", override)]
        server = await asyncio.create_subprocess_exec(
            config.codex_bin,
            *words,
            "app-server",
            *(word for address in wanted for word in ("--listen", address)),
            env={**os.environ, **config.env},
            cwd=config.cwd,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            addresses = []
            while len(addresses) < len(wanted):
                line = await asyncio.wait_for(server.stderr.readline(), 20)
                addresses += [line.decode().split()[-1]] if line.startswith(b"listening on") else []
            yield addresses, (Path(config.env["CODEX_HOME"]) / "run" / "app-server.token").read_text().strip()
        finally:
            server.terminate()
            await server.communicate()

    async def turn(self, client):
        """The answer of the model in a turn."""
        opened = await client.methods.thread_start({})
        text = {"type": "text", "text": "Hello. " * 12_000}
        await client.methods.turn_start({"threadId": opened["thread"]["id"], "input": [text]})
        answer = None
        while not isinstance(event := await asyncio.wait_for(client.events.next(), 20), events.TurnEnded):
            if isinstance(event, events.ItemCompleted) and event.item["type"] == "agentMessage":
                answer = event.item["text"]
        self.assertEqual(event.status, "completed")
        return answer

    async def test_a_server_that_runs_already_is_reached_at_any_address(self):
        # A long answer, so that messages have frames of all lengths.
        text = "Reached. " * 20_000
        async with self.listening([says(text)] * 3) as (addresses, token):
            for address in addresses:
                client = await dial(address, token=token)
                self.assertEqual(await self.turn(client), text, address)
                client.close()
                await client.wait_closed(20)
                self.assertTrue(client.is_closed, address)
        for address in addresses:
            with self.assertRaisesRegex(StartError, "cannot connect to"):
                await dial(address, token=token)

    async def test_a_supervisor_dials_any_address_and_a_wrong_token_or_none_is_named(self):
        async with self.listening([]) as (addresses, token):
            for address in addresses:
                supervisor = Supervisor(Listening(address, token))
                client = await supervisor.connection()
                self.assertEqual((await client.methods.thread_list({}))["data"], [])
                await supervisor.stop()
                self.assertTrue(client.is_closed)
                if address.startswith("unix:"):
                    continue
                with self.assertRaisesRegex(StartError, "cannot connect to .*token"):
                    await dial(address, token="x" * 20)
                tokenless = Supervisor(Listening(address))
                with self.assertRaisesRegex(StartError, "needs a token"):
                    await tokenless.connection()
                self.assertIsNone(tokenless.state.delay, "another attempt would fail in the same way")


if __name__ == "__main__":
    unittest.main()
