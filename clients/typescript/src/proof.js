// Proofs that both sides of a connection know the same token, without sending it (Node).

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** The scheme of the header that carries nonces and proofs. */
const SCHEME = "Codex-Proof";
const NONCE = /^[0-9a-f]{64}$/i;

/** The address that a socket has connected to. */
function addressOfSocket({ remoteAddress, remotePort }) {
  return `${remoteAddress.includes(":") ? `[${remoteAddress}]` : remoteAddress}:${remotePort}`;
}

/** The exchange of proofs over one connection. */
export class Exchange {
  #token;

  constructor(token, socket, nonce = randomBytes(32).toString("hex")) {
    this.#token = token;
    this.nonce = nonce;
    this.address = addressOfSocket(socket);
  }

  /** The header of the first request. */
  get hello() {
    return `${SCHEME} nonce=${this.nonce} address=${this.address}`;
  }

  /** The client's proof, once the server has given its own. */
  prove(nonce, proofs) {
    const expected = this.#mac("server", nonce);
    const isProof = (proof) => {
      const given = Buffer.from(proof, "hex");
      return given.length === expected.length && timingSafeEqual(given, expected);
    };
    if (!NONCE.test(nonce) || !String(proofs).split(",", 2).some(isProof)) {
      throw new Error("it did not prove that it knows the token, so the token was not sent (see `sendToken`)");
    }
    return this.#mac("client", nonce).toString("hex");
  }

  /** The header of the second request, from that of the server's response to the first. */
  answer(challenge) {
    const [scheme, ...parts] = String(challenge ?? "").split(" ");
    const given = new Map(parts.map((part) => part.split("=", 2)));
    const isKnown = scheme.toLowerCase() === SCHEME.toLowerCase();
    return `${SCHEME} proof=${this.prove(isKnown ? given.get("nonce") : "", given.get("proof"))}`;
  }

  #mac(side, nonce) {
    const text = [`codex ${side}`, this.nonce, nonce, this.address].map((part) => `${part}\n`).join("");
    return createHmac("sha256", this.#token).update(text).digest();
  }
}
