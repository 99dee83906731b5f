#!/usr/bin/python3
"""An independent WireGuard handshake, to make the vectors that the C tests read.

Pure Python and slow on purpose: X25519, ChaCha20 and Poly1305 are written from
the RFCs, AES and GCM from FIPS 197 and SP 800-38D, and all are checked against
published vectors first; BLAKE2s is hashlib's. So nothing is shared with the
code under test but the specification.

    noise_reference.py > noise-handshake.txt
    noise_reference.py cookie > noise-cookie.txt
    noise_reference.py path > path.txt
    noise_reference.py aead > aead.txt
    noise_reference.py aes256gcm > aead-aes256gcm.txt    (a minute)
"""
import hashlib
import hmac
import struct
import sys

P = 2**255 - 19


# ---- primitives ----

def x25519(scalar, point):
    """RFC 7748 section 5."""
    k = int.from_bytes(scalar, "little") & ~7 & ~(128 << 8 * 31) | 64 << 8 * 31
    u = int.from_bytes(point, "little") & (1 << 255) - 1
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b = x2 + z2, x2 - z2
        aa, bb = a * a % P, b * b % P
        e = aa - bb
        da, cb = (x3 - z3) * a % P, (x3 + z3) * b % P
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def public_of(secret):
    return x25519(secret, (9).to_bytes(32, "little"))


def chacha_rounds(state):
    def quarter(a, b, c, d):
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = s[x] + s[y] & 0xffffffff
            v = s[z] ^ s[x]
            s[z] = (v << n | v >> 32 - n) & 0xffffffff
    s = list(state)
    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return s


def chacha_state(key, last16):
    return struct.unpack("<16I", b"expand 32-byte k" + key + last16)


def chacha_block(key, counter, nonce):
    """RFC 8439 section 2.3."""
    state = chacha_state(key, struct.pack("<I", counter) + nonce)
    return struct.pack("<16I", *((a + b) & 0xffffffff for a, b in zip(chacha_rounds(state), state)))


def hchacha(key, nonce16):
    """draft-irtf-cfrg-xchacha section 2.2."""
    s = chacha_rounds(chacha_state(key, nonce16))
    return struct.pack("<8I", *s[:4], *s[12:])


def poly1305(key, data):
    """RFC 8439 section 2.5."""
    r = int.from_bytes(key[:16], "little") & 0x0ffffffc0ffffffc0ffffffc0fffffff
    acc = 0
    for i in range(0, len(data), 16):
        acc = (acc + int.from_bytes(data[i:i + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return ((acc + int.from_bytes(key[16:], "little")) & (1 << 128) - 1).to_bytes(16, "little")


def aead(key, nonce, text, ad):
    """RFC 8439 section 2.8."""
    stream = b"".join(chacha_block(key, i + 1, nonce) for i in range((len(text) + 63) // 64))
    out = bytes(a ^ b for a, b in zip(text, stream))
    pad = lambda b: b + bytes(-len(b) % 16)
    mac = pad(ad) + pad(out) + struct.pack("<QQ", len(ad), len(out))
    return out + poly1305(chacha_block(key, 0, nonce)[:32], mac)


def counter_aead(key, counter, text, ad):
    return aead(key, struct.pack("<IQ", 0, counter), text, ad)


def xtime(a):
    """FIPS 197 section 4.2.1."""
    return a << 1 ^ (0x11b if a & 0x80 else 0)


def make_sbox():
    """FIPS 197 section 5.1.1: the inverse in GF(2^8), then the affine map."""
    power, log, a = [0] * 255, {}, 1
    for i in range(255):
        power[i], log[a] = a, i
        a ^= xtime(a)
    box = []
    for byte in range(256):
        b = power[-log[byte] % 255] if byte else 0
        box.append(b ^ rotl8(b, 1) ^ rotl8(b, 2) ^ rotl8(b, 3) ^ rotl8(b, 4) ^ 0x63)
    return box


def rotl8(b, n):
    return (b << n | b >> 8 - n) & 255


SBOX = make_sbox()


def aes256_expand(key):
    """FIPS 197 section 5.2, with 15 round keys."""
    w = [list(key[i:i + 4]) for i in range(0, 32, 4)]
    rcon = 1
    for i in range(8, 60):
        t = w[i - 1]
        if i % 8 == 0:
            t = [SBOX[b] for b in t[1:] + t[:1]]
            t[0] ^= rcon
            rcon = xtime(rcon)
        elif i % 8 == 4:
            t = [SBOX[b] for b in t]
        w.append([a ^ b for a, b in zip(w[i - 8], t)])
    return [sum(w[i:i + 4], []) for i in range(0, 60, 4)]


def aes_block(round_keys, block):
    """FIPS 197 section 5.1."""
    s = [a ^ b for a, b in zip(block, round_keys[0])]
    for n, round_key in enumerate(round_keys[1:], 1):
        s = [SBOX[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if n < 14:
            mixed = []
            for c in range(0, 16, 4):
                col = s[c:c + 4]
                every = col[0] ^ col[1] ^ col[2] ^ col[3]
                mixed += [col[i] ^ every ^ xtime(col[i] ^ col[(i + 1) % 4]) for i in range(4)]
            s = mixed
        s = [a ^ b for a, b in zip(s, round_key)]
    return bytes(s)


def ghash(h, data):
    """SP 800-38D section 6.4; multiplication as in 6.3, bit 0 is the leftmost."""
    multiples, v = [], h
    for _ in range(128):
        multiples.append(v)
        v = v >> 1 ^ (0xe1 << 120 if v & 1 else 0)
    y = 0
    for i in range(0, len(data), 16):
        x = y ^ int.from_bytes(data[i:i + 16], "big")
        y = 0
        for bit in range(128):
            if x >> 127 - bit & 1:
                y ^= multiples[bit]
    return y.to_bytes(16, "big")


def aes256gcm(key, nonce, text, ad):
    """SP 800-38D section 7.1, for a nonce of 96 bits."""
    round_keys = aes256_expand(key)
    h = int.from_bytes(aes_block(round_keys, bytes(16)), "big")
    stream = b"".join(aes_block(round_keys, nonce + struct.pack(">I", i + 2))
                      for i in range((len(text) + 15) // 16))
    out = bytes(a ^ b for a, b in zip(text, stream))
    pad = lambda b: b + bytes(-len(b) % 16)
    s = ghash(h, pad(ad) + pad(out) + struct.pack(">QQ", 8 * len(ad), 8 * len(out)))
    first = aes_block(round_keys, nonce + struct.pack(">I", 1))
    return out + bytes(a ^ b for a, b in zip(s, first))


def counter_aes256gcm(key, counter, text, ad):
    return aes256gcm(key, struct.pack("<IQ", 0, counter), text, ad)


def xaead(key, nonce, text, ad):
    return aead(hchacha(key, nonce[:16]), bytes(4) + nonce[16:], text, ad)


def blake2s(data):
    return hashlib.blake2s(data).digest()


def mac(key, data):
    return hashlib.blake2s(data, key=key, digest_size=16).digest()


def kdf(n, key, data):
    prk = hmac.new(key, data, hashlib.blake2s).digest()
    out, last = [], b""
    for i in range(n):
        last = hmac.new(prk, last + bytes([i + 1]), hashlib.blake2s).digest()
        out.append(last)
    return out


def check_primitives():
    """The vectors of the RFCs, before anything is made with these functions."""
    h = bytes.fromhex
    assert x25519(h("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"),
                  h("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")) == \
        h("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    assert aead(bytes(range(0x80, 0xa0)), h("070000004041424344454647"),
                b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for "
                b"the future, sunscreen would be it.", h("50515253c0c1c2c3c4c5c6c7"))[-16:] == \
        h("1ae10b594f09e26a7e902ecbd0600691")
    assert hchacha(bytes(range(32)), h("000000090000004a0000000031415927")) == \
        h("82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc")
    # FIPS 197 appendix C.3; the GCM specification's test case 16.
    assert aes_block(aes256_expand(bytes(range(32))),
                     h("00112233445566778899aabbccddeeff")) == \
        h("8ea2b7ca516745bfeafc49904b496089")
    assert aes256gcm(h("feffe9928665731c6d6a8f9467308308") * 2, h("cafebabefacedbaddecaf888"),
                     h("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                       "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"),
                     h("feedfacedeadbeeffeedfacedeadbeefabaddad2"))[-16:] == \
        h("76fc6ece0f4e1768cddf8853bb2d551b")
    assert blake2s(b"abc") == h("508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982")


# ---- the protocol, whitepaper 5.4 ----

CONSTRUCTION = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
IDENTIFIER = b"WireGuard v1 zx2c4 Jason@zx2c4.com"

# docs/wire/aes.md: the same handshake under other names, data in another cipher.
AES_CONSTRUCTION = b"Noise_IKpsk2_25519_ChaChaPoly/AESGCM_BLAKE2s"
AES_IDENTIFIER = b"Weft v1 WireGuard with AES-256-GCM transport"

TRANSPORTS = {"chacha20poly1305": counter_aead, "aes256gcm": counter_aes256gcm}


def tai64n(wall_ns):
    """Rounded down to 2^24 ns within the second."""
    return struct.pack(">QI", 2**62 + 10 + wall_ns // 10**9, wall_ns % 10**9 >> 24 << 24)


def with_macs(message, receiver, cookie):
    m1 = mac(blake2s(b"mac1----" + receiver), message)
    return message + m1 + (mac(cookie, message + m1) if cookie else bytes(16))


def handshake(v):
    """Fills in every intermediate value of one handshake, in place."""
    si, sr, ei, er = (v[n] for n in ("initiator_static", "responder_static",
                                     "initiator_ephemeral", "responder_ephemeral"))
    pub_i, pub_r, epub_i, epub_r = map(public_of, (si, sr, ei, er))
    v["initiator_public"], v["responder_public"] = pub_i, pub_r

    # 5.4.2
    ck = blake2s(v["construction"])
    h = blake2s(ck + v["identifier"])
    v["start_ck"], v["start_h"] = ck, h
    h = blake2s(h + pub_r)
    ck = kdf(1, ck, epub_i)[0]
    h = blake2s(h + epub_i)
    ck, k = kdf(2, ck, x25519(ei, pub_r))
    static = counter_aead(k, 0, pub_i, h)
    h = blake2s(h + static)
    v["opened_ck"], v["opened_h"] = ck, h
    ck, k = kdf(2, ck, x25519(si, pub_r))
    v["tai64n"] = tai64n(v["wall"])
    stamp = counter_aead(k, 0, v["tai64n"], h)
    h = blake2s(h + stamp)
    v["initiation_ck"], v["initiation_h"] = ck, h
    v["initiation"] = with_macs(struct.pack("<II", 1, v["initiator_index"]) + epub_i + static +
                                stamp, pub_r, v.get("cookie"))

    # 5.4.3
    ck = kdf(1, ck, epub_r)[0]
    h = blake2s(h + epub_r)
    ck = kdf(1, ck, x25519(er, epub_i))[0]
    ck = kdf(1, ck, x25519(er, pub_i))[0]
    ck, tau, k = kdf(3, ck, v["psk"])
    h = blake2s(h + tau)
    empty = counter_aead(k, 0, b"", h)
    h = blake2s(h + empty)
    v["response_ck"], v["response_h"] = ck, h
    v["response"] = with_macs(struct.pack("<III", 2, v["responder_index"], v["initiator_index"]) +
                              epub_r + empty, pub_i, None)

    # 5.4.5
    v["initiator_seal"], v["responder_seal"] = kdf(2, ck, b"")


def data(v, n, sender, counter, text):
    """5.4.6; @text is padded already."""
    to = v["responder_index"] if sender == "initiator" else v["initiator_index"]
    v[f"data{n}_sender"] = sender.encode()
    v[f"data{n}_counter"] = counter
    v[f"data{n}_text"] = text
    v[f"data{n}"] = struct.pack("<IIQ", 4, to, counter) + \
        TRANSPORTS[v["transport"].decode()](v[sender + "_seal"], counter, text, b"")


def scalar(label):
    """Fixed, arbitrary, and reproducible."""
    return blake2s(b"weft vector " + label.encode())


def show(name, v):
    print(f"\ncase = {name}")
    for key, value in v.items():
        if isinstance(value, int):
            print(f"{key} = {value}")
        else:
            print(f"{key} = {value.hex() if value else '-'}")


def handshake_cases():
    wireguard = CONSTRUCTION, IDENTIFIER, b"chacha20poly1305"
    another = CONSTRUCTION, b"another prologue", b"chacha20poly1305"
    aes = AES_CONSTRUCTION, AES_IDENTIFIER, b"aes256gcm"
    for name, psk, (construction, identifier, transport) in (
            ("plain", bytes(32), wireguard), ("psk", scalar("psk"), wireguard),
            ("identifier", scalar("psk"), another),
            ("aes", bytes(32), aes), ("aes psk", scalar("psk"), aes)):
        v = {
            "construction": construction, "identifier": identifier, "transport": transport,
            "initiator_static": scalar(name + " initiator"),
            "responder_static": scalar(name + " responder"),
            "initiator_ephemeral": scalar(name + " initiator ephemeral"),
            "responder_ephemeral": scalar(name + " responder ephemeral"),
            "psk": psk, "wall": 1790000000987654321,
            "initiator_index": 0x11223344, "responder_index": 0xaabbccdd,
        }
        handshake(v)
        data(v, 0, "initiator", 0, b"")
        data(v, 1, "responder", 0, bytes(range(48)))
        data(v, 2, "initiator", 1, bytes(i * 7 & 255 for i in range(1424)))
        data(v, 3, "responder", 2**31 + 5 if transport == b"aes256gcm" else 2**60 + 5, bytes(64))
        show(name, v)


def cookie_cases():
    """5.4.7, and 5.4.4 with the cookie."""
    for name, address, port in (("v4", bytes(10) + b"\xff\xff\xc0\x00\x02\x01", 51820),
                                ("v6", bytes.fromhex("20010db8000000000000000000000007"), 1)):
        v = {
            "construction": CONSTRUCTION, "identifier": IDENTIFIER,
            "initiator_static": scalar(name + " initiator"),
            "responder_static": scalar(name + " responder"),
            "initiator_ephemeral": scalar(name + " initiator ephemeral"),
            "responder_ephemeral": scalar(name + " responder ephemeral"),
            "psk": bytes(32), "wall": 1790000000000000000,
            "initiator_index": 7, "responder_index": 9,
            "source": address, "port": port,
            "secret": scalar(name + " cookie secret"), "nonce": scalar(name + " nonce")[:24],
        }
        handshake(v)
        cookie = mac(v["secret"], address + struct.pack(">H", port))
        key = blake2s(b"cookie--" + v["responder_public"])
        v["reply"] = struct.pack("<II", 3, 7) + v["nonce"] + \
            xaead(key, v["nonce"], cookie, v["initiation"][-32:-16])
        v["cookie"] = cookie
        v["initiation_before"] = v["initiation"]
        handshake(v)
        show(name, v)


def aead_cases(seal):
    """Lengths around the block sizes of vector code; one long associated data."""
    for n in (0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 319, 320, 321, 511, 513,
              1023, 1424, 2047, 2100):
        key = scalar(f"aead {n}")
        text = (key * 66)[:n]
        ad = key[:n % 33]
        show(f"length {n}", {"key": key, "counter": n * 2654435761, "ad": ad, "text": text,
                             "sealed": seal(key, n * 2654435761, text, ad)})
    # Every length, as one hash of all that comes out; the counter is the length.
    key, text = scalar("aead all"), bytes(i * 7 & 255 for i in range(2100))
    every = hashlib.blake2s()
    for n in range(2101):
        every.update(seal(key, n, text[:n], key[:n % 9]))
    show("all lengths", {"key": key, "text": text, "all": every.digest()})


def path_frame(v, key, tag):
    """docs/wire/path.md: the sealed frame of the fields in v."""
    body = struct.pack(">BBHIQQQQQ", v["kind"], v["flags"], v["size"], v["held"],
                       v["transaction"], v["session"], v["echo"], v["sequence"], v["clock"])
    body += v["observed"] + struct.pack(">HH", v["port"], 0)
    body += bytes(v["length"] - 36 - len(body) - 16)
    header = b"\x80\x01\0\0" + tag
    return header + v["nonce"] + xaead(key, v["nonce"], body, header)


def path_cases():
    for number, (kind, length, v4) in enumerate([(1, 120, True), (2, 120, False), (3, 120, True),
                                                 (5, 120, True), (6, 1400, True), (7, 120, False)]):
        name = f"path {number}"
        v = {"own_secret": scalar(name + " own"), "peer_secret": scalar(name + " peer")}
        v["own_public"], v["peer_public"] = public_of(v["own_secret"]), public_of(v["peer_secret"])
        low, high = sorted([v["own_public"], v["peer_public"]])
        shared = x25519(v["own_secret"], v["peer_public"])
        k1, k2, tags = kdf(3, blake2s(b"weft path 1"), shared + low + high)
        is_low = v["own_public"] == low
        v.update(kind=kind, flags=number, size=1000 + number, held=77 * number, length=length,
                 transaction=2**40 + number, session=2**63 + number, echo=number, sequence=number,
                 clock=10**18 + number, port=51820 + number, nonce=scalar(name + " nonce")[:24],
                 observed=bytes(10) + b"\xff\xff\xc6\x33\x64\x07" if v4 else scalar(name)[:16])
        v["frame"] = path_frame(v, k1 if is_low else k2, tags[:8] if is_low else tags[8:16])
        show(name, v)


def main():
    check_primitives()
    what = sys.argv[1] if len(sys.argv) > 1 else "handshake"
    print(f"# Made by noise_reference.py {what}: do not edit. Hex, but for counters, indices,")
    print("# ports and the wall clock (ns); '-' is no bytes.")
    {"handshake": handshake_cases, "cookie": cookie_cases, "path": path_cases,
     "aead": lambda: aead_cases(counter_aead),
     "aes256gcm": lambda: aead_cases(counter_aes256gcm)}[what]()


if __name__ == "__main__":
    main()
