/** Servers for the tests of the guard: decoys that count who comes, and one that a name in DNS could lead to. */
import type { RequestListener } from 'node:http'
import https from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { createOutbound, type OutboundOptions } from '../../src/transports/outbound/outbound.ts'

/** Stands for a public address, because it is allowed by name; 127.0.0.1 stays forbidden. */
const stage = '127.0.0.2'

/** Valid for public.example and other.example, signed by itself: for these tests alone. */
const key = pem(
  'PRIVATE KEY',
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgNq2iq87IJL6aS/o3JExknl/RxdWwNRG9l5NtN2Zm8xShRANCAAR3SDVGhnXVIf18JPLbpMPI9Zr0E9f/J+sEWlsfWq/mhhvkqtAf+8KoLbbdK2xjG62XGf7RH+oaDw5gm1rnXR+x',
)
const cert = pem(
  'CERTIFICATE',
  'MIIBtzCCAV6gAwIBAgIUMrstfTBY4SrNdH+4dFTOZV/uufMwCgYIKoZIzj0EAwIwDzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMTYwMjAwMjZaGA8yMTI2MTAyMzAyMDAyNlowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHdINUaGddUh/Xwk8tukw8j1mvQT1/8n6wRaWx9ar+aGG+Sq0B/7wqgttt0rbGMbrZcZ/tEf6hoPDmCbWuddH7GjgZUwgZIwHQYDVR0OBBYEFFNjfRbsOK9uGBv2ow+ZIIBELYEPMB8GA1UdIwQYMBaAFFNjfRbsOK9uGBv2ow+ZIIBELYEPMA8GA1UdEwEB/wQFMAMBAf8wPwYDVR0RBDgwNoIOcHVibGljLmV4YW1wbGWCDW90aGVyLmV4YW1wbGWHBH8AAAKCCWxvY2FsaG9zdIcEfwAAATAKBggqhkjOPQQDAgNHADBEAiBcf84qQ9kG2oQY1v/b0hFWnP0mGTEzHfp/UoV0neVvuwIgTY+isNCDxjZCHTk/IWo4R+mYEoD51hdrNbS58y4gxps=',
)

export interface Decoy {
  port: number
  /** Whether this machine has IPv6. */
  six: boolean
  hits: number
}

/** Listens on every address of this machine and counts connections, whatever they say. */
export async function decoy(): Promise<Decoy> {
  const seen: Decoy = { port: 0, six: true, hits: 0 }
  const server = createServer(socket => {
    seen.hits++
    socket.on('error', () => {})
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret')
  })
  seen.port = await listen(server, '::').catch(() => {
    seen.six = false
    return listen(server, '0.0.0.0')
  })
  return seen
}

/** Serves https on an address that stands for a public one. `sockets`: those that are open, also of clients that have not asked yet. */
export async function publicServer(listener: RequestListener): Promise<{ url: string; other: string; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>()
  const server = https.createServer({ key, cert }, listener)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const port = await listen(server, stage)
  return { url: `https://public.example:${port}/`, other: `https://other.example:${port}/`, sockets }
}

/** A guard for which `*.example` is that address, and every other name this machine. */
export function guard(options: OutboundOptions = {}) {
  return createOutbound({ ...stageOptions, ...options })
}

export const stageOptions: OutboundOptions = {
  allow: [stage],
  ca: cert,
  resolve: async name => [name.endsWith('.example') ? stage : '127.0.0.1'],
}

async function listen(server: Server, host: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, resolve)
  })
  onTestFinished(() => {
    if (server instanceof https.Server) server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function pem(label: string, base64: string): string {
  return `-----BEGIN ${label}-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`
}
