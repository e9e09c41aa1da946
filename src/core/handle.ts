/**
 * Handles: tokens that only we can read or write, given to others to keep. AES-256-GCM under a key derived from a secret;
 * what a handle is for (kind, principal, audience, bound digest) is authenticated with it, and its expiry is inside.
 * Every failure to open is one and the same, so that a forger learns nothing.
 */

import { add, type Op, type Store } from '../stores/store.ts'
import { fromBase64Url, joinBytes, toBase64Url } from './base64.ts'
import { type Clock, realClock } from './clock.ts'
import { problem } from './problem.ts'

/** The longest token given out or looked at, in characters. */
export const handleLimit = 64 * 1024

/** The refusal of a token, whatever is wrong with it: a caller learns nothing from the reason. */
export class HandleError extends Error {
  override readonly name = 'HandleError'
  constructor() {
    super('This token is not valid, or has expired. Start again without it, and use the token that you then receive')
  }
}

/** What a handle is good for. Whoever opens it must say exactly the same. */
export interface HandlePurpose {
  /** What it stands for, e.g. `cursor`; name a new kind when the shape of its data changes. */
  readonly kind: string
  /** Whose it is. */
  readonly principal?: string | undefined
  /** Which server may open it. */
  readonly audience?: string | undefined
  /** The digest of what it was made for, e.g. of a call's arguments. */
  readonly bound?: string | undefined
}

interface HandleContent extends HandlePurpose {
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  /** Any JSON value. */
  readonly data: unknown
}

/** A handle that was opened. */
export interface OpenedHandle {
  readonly data: unknown
  readonly expiresAt: number
  /** No other handle has it: what is counted per handle is counted under it. */
  readonly id: string
}

/** Seals values into tokens, and opens tokens that it, or a replica with the same secret, has sealed. */
export interface Seal {
  /** True when the secret was given: other replicas, and this one after a restart, can open what it sealed. */
  readonly durable: boolean
  seal(content: HandleContent): Promise<string>
  /** The data that was sealed. Rejects with `HandleError`, whatever is wrong. */
  open(token: unknown, purpose: HandlePurpose): Promise<unknown>
  /** The same with what else is known of it, for handles that are good for a number of uses. */
  read(token: unknown, purpose: HandlePurpose): Promise<OpenedHandle>
}

interface SealOptions {
  /** Newest first: it seals, all open. Text of at least 32 characters, or as many bytes. Default: one made now, lost at exit. */
  readonly secrets?: string | Uint8Array | ReadonlyArray<string | Uint8Array> | undefined
  readonly clock?: Clock
  readonly random?: (length: number) => Uint8Array<ArrayBuffer>
}

/**
 * @example
 * const seal = createSeal({ secrets: process.env.SECRET })
 * const cursor = await seal.seal({ kind: 'cursor', expiresAt: Date.now() + 600_000, data: 42 })
 * await seal.open(cursor, { kind: 'cursor' }) // 42
 */
export function createSeal({ secrets, clock = realClock, random = randomBytes }: SealOptions = {}): Seal {
  const given = (secrets === undefined ? [] : Array.isArray(secrets) ? secrets : [secrets]).map(secretBytes)
  let ring: Promise<Ring> | undefined
  const keys = () => {
    ring ??= deriveRing(given.length === 0 ? [random(32)] : given)
    return ring
  }
  const read = async (token: unknown, purpose: HandlePurpose): Promise<OpenedHandle> => {
    const opened = await decrypt(await keys(), token, purpose)
    if (opened === undefined || !(opened.expiresAt > clock.now())) throw new HandleError()
    return opened
  }
  return {
    durable: given.length > 0,
    async seal({ expiresAt, data, ...purpose }) {
      if (!Number.isFinite(expiresAt)) throw new TypeError(`expiresAt is ${expiresAt}: every handle needs an expiry time`)
      const { newest } = await keys()
      const text = new TextEncoder().encode(JSON.stringify([expiresAt, data]))
      const length = Math.ceil(((headLength + text.length + tagLength) * 4) / 3)
      if (length > handleLimit) throw tooLarge(length)
      const nonce = random(nonceLength)
      const additionalData = purposeBytes(newest.id, purpose)
      const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: nonce, additionalData }, newest.key, text)
      return toBase64Url(joinBytes([versionByte, newest.id, nonce, new Uint8Array(sealed)]))
    },
    open: async (token, purpose) => (await read(token, purpose)).data,
    read,
  }
}

interface Key {
  /** Says which secret sealed, and nothing about the secret. */
  readonly id: Uint8Array<ArrayBuffer>
  readonly key: Awaited<ReturnType<typeof crypto.subtle.deriveKey>>
}

interface Ring {
  readonly newest: Key
  readonly byId: ReadonlyMap<string, Key>
}

const versionByte = new Uint8Array([1])
const idLength = 6
const nonceLength = 12
const tagLength = 16
const headLength = versionByte.length + idLength + nonceLength

/** Undefined for whatever was not sealed by one of these keys for this purpose. */
async function decrypt(ring: Ring, token: unknown, purpose: HandlePurpose): Promise<OpenedHandle | undefined> {
  if (typeof token !== 'string' || token.length > handleLimit) return undefined
  const bytes = fromBase64Url(token)
  if (bytes === undefined || bytes.length <= headLength || bytes[0] !== versionByte[0]) return undefined
  const id = bytes.subarray(1, 1 + idLength)
  const key = ring.byId.get(toBase64Url(id))
  if (key === undefined) return undefined
  const nonce = bytes.subarray(1 + idLength, headLength)
  try {
    const algorithm = { name: 'AES-GCM', iv: nonce, additionalData: purposeBytes(id, purpose) }
    const text = await crypto.subtle.decrypt(algorithm, key.key, bytes.subarray(headLength))
    const [expiresAt, data]: [number, unknown] = JSON.parse(new TextDecoder().decode(text))
    // A key seals under each nonce once, and nothing in a token can be changed: the two name it.
    return { data, expiresAt, id: toBase64Url(bytes.subarray(1, headLength)) }
  } catch {
    // The cipher says only that it does not fit, which is all that may be said.
    return undefined
  }
}

/** Unambiguous: no two purposes share an encoding. */
function purposeBytes(keyId: Uint8Array, purpose: HandlePurpose): Uint8Array<ArrayBuffer> {
  const { kind, principal = null, audience = null, bound = null } = purpose
  return new TextEncoder().encode(JSON.stringify([versionByte[0], toBase64Url(keyId), kind, principal, audience, bound]))
}

async function deriveRing(secrets: ReadonlyArray<Uint8Array<ArrayBuffer>>): Promise<Ring> {
  const keys = await Promise.all(secrets.map(deriveKey))
  const [newest] = keys
  if (newest === undefined) throw new TypeError('At least one secret is required')
  return { newest, byId: new Map(keys.map(key => [toBase64Url(key.id), key])) }
}

async function deriveKey(secret: Uint8Array<ArrayBuffer>): Promise<Key> {
  const root = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits', 'deriveKey'])
  const hkdf = (info: string) => {
    const encoder = new TextEncoder()
    return { name: 'HKDF', hash: 'SHA-256', salt: encoder.encode('vivarium/handle/1'), info: encoder.encode(info) }
  }
  return {
    id: new Uint8Array(await crypto.subtle.deriveBits(hkdf('id'), root, idLength * 8)),
    key: await crypto.subtle.deriveKey(hkdf('key'), root, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']),
  }
}

function secretBytes(secret: string | Uint8Array): Uint8Array<ArrayBuffer> {
  if (secret.length >= 32) return typeof secret === 'string' ? new TextEncoder().encode(secret) : new Uint8Array(secret)
  throw new TypeError(
    `A secret of ${secret.length} ${typeof secret === 'string' ? 'characters' : 'bytes'} is too short and can be guessed. Give at least 32 random ones, for example from: openssl rand -base64 32`,
  )
}

function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(length))
}

function tooLarge(length: number): Error {
  return problem('PAYLOAD_TOO_LARGE', `The data to put into a token has ${length} characters; the limit is ${handleLimit}`, {
    category: 'permanent',
    suggestion: 'Put less into it: store the data, and put only its id into the token',
    actor: 'operator',
  })
}

// Handles that are good for a number of uses, counted on a store: whoever comes with one that is used up is told so, in every
// process. What is remembered of a handle outlives it a little and is then forgotten, so it never grows beyond what is valid.

/** Clocks of processes and stores differ; a mark that ended before its handle would let the handle be used again. */
const graceMs = 60_000

interface SpendingOptions {
  readonly store: Store
  readonly clock: Clock
}

/** Remembers which single-use tokens were used, as long as they could be presented again. */
export class UsedHandles {
  readonly #store: Store
  readonly #clock: Clock

  constructor(options: SpendingOptions) {
    this.#store = options.store
    this.#clock = options.clock
  }

  /** Counts one use. False where it was used up already, or has ended. `also` is written with it, or nothing is. */
  async spend(handle: OpenedHandle, uses = 1, also: readonly Op[] = []): Promise<boolean> {
    if (handle.expiresAt <= this.#clock.now()) return false
    return (await this.#store.commit([this.spending(handle, uses), ...also])).ok
  }

  /** The step that counts one use, for a commit of other things; the commit fails where none is left. */
  spending(handle: OpenedHandle, uses = 1): Op {
    const ttl = Math.max(0, handle.expiresAt - this.#clock.now()) + graceMs
    return add(spentKey(handle), 1, { max: uses, ttl })
  }

  async isSpent(handle: OpenedHandle, uses = 1): Promise<boolean> {
    const entry = await this.#store.get(spentKey(handle))
    return entry !== undefined && Number(entry.value) >= uses
  }
}

function spentKey(handle: OpenedHandle): string {
  return `spent/${handle.id}`
}
