/**
 * Tokens in one encrypted file. Every change reads the file anew and replaces it in one step, so that processes that share
 * it see each other's tokens and none ever sees half a file; the last of two writers at the same instant wins.
 */
import { randomBytes, scrypt } from 'node:crypto'
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { isRecord } from '../../jsonrpc/message.ts'
import { AuthorizationError } from '../addresses.ts'
import type { TokenStorage } from './storage.ts'

/** Told apart from other files, and from other ways to write this one. */
const mark = Buffer.from('vivarium tokens 1\n')
const saltBytes = 16
const ivBytes = 12
/** Entries beyond it push out the oldest: each server that was ever met leaves some. */
const most = 1_000
const derive = promisify<string, Buffer, number, Buffer>(scrypt)

/** Opens a token storage in an encrypted file; the key is derived from `secret`. */
export function openFileStorage(path: string, secret: string): TokenStorage {
  const keys = new Map<string, Promise<CryptoKey>>()
  const keyFor = (salt: Buffer): Promise<CryptoKey> => {
    const name = salt.toString('hex')
    const known = keys.get(name)
    if (known !== undefined) return known
    const made = derive(secret, salt, 32).then(bytes =>
      crypto.subtle.importKey('raw', new Uint8Array(bytes), 'AES-GCM', false, ['encrypt', 'decrypt']),
    )
    keys.clear()
    keys.set(name, made)
    return made
  }
  let salt: Buffer | undefined
  const read = async (): Promise<Map<string, string>> => {
    const file = await readFile(path).catch(absent)
    if (file === undefined) return new Map()
    if (!file.subarray(0, mark.length).equals(mark)) throw unreadable(path)
    salt = file.subarray(mark.length, mark.length + saltBytes)
    return decrypt(file, await keyFor(salt), path)
  }
  // One change after the other: each works on what the one before has left.
  let last: Promise<unknown> = Promise.resolve()
  const change = (fn: (entries: Map<string, string>) => void): Promise<void> => {
    const done = last.then(async () => {
      const entries = await read()
      fn(entries)
      salt ??= randomBytes(saltBytes)
      await replace(path, await encrypt(entries, salt, await keyFor(salt)))
    })
    last = done.catch(() => undefined)
    return done
  }
  return {
    get: async key => (await read()).get(key),
    set: (key, value) =>
      change(entries => {
        entries.delete(key)
        entries.set(key, value)
        for (const oldest of entries.keys()) {
          if (entries.size <= most) break
          entries.delete(oldest)
        }
      }),
    delete: key => change(entries => void entries.delete(key)),
  }
}

async function decrypt(file: Buffer, key: CryptoKey, path: string): Promise<Map<string, string>> {
  const at = mark.length + saltBytes
  const iv = new Uint8Array(file.subarray(at, at + ivBytes))
  const sealed = new Uint8Array(file.subarray(at + ivBytes))
  try {
    const additionalData = new Uint8Array(file.subarray(0, at))
    const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv, additionalData }, key, sealed)
    const value: unknown = JSON.parse(new TextDecoder().decode(plain))
    if (!isRecord(value)) throw unreadable(path)
    return new Map(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
  } catch {
    throw unreadable(path)
  }
}

async function encrypt(entries: Map<string, string>, salt: Buffer, key: CryptoKey): Promise<Buffer> {
  const head = Buffer.concat([mark, salt])
  const iv = new Uint8Array(randomBytes(ivBytes))
  const plain = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)))
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData: new Uint8Array(head) }, key, plain)
  return Buffer.concat([head, iv, Buffer.from(sealed)])
}

async function replace(path: string, contents: Buffer): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(contents)
      await file.sync()
    } finally {
      await file.close()
    }
    await chmod(draft, 0o600)
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
  return undefined
}

function unreadable(path: string): AuthorizationError {
  return new AuthorizationError(
    'options',
    `The token file ${path} was written with another secret, or is damaged; use the original secret, or delete the file and sign in again`,
  )
}
