/**
 * Serving a file over HTTP. Watched, it runs in a worker that shares the port with its successor: the new one takes requests before
 * the old one finishes its own and goes, so that the port is never closed. One that does not start changes nothing.
 */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { dirname, resolve } from 'node:path'
import { oauth } from '../../auth/resource/options.ts'
import { given } from '../../jsonrpc/message.ts'
import type { Auth } from '../../server/auth.ts'
import { messageOf } from '../../stores/store.ts'
import type { Listening } from '../../transports/http/listening.ts'
import { CliError, type Io, untilInterrupted } from '../io.ts'
import { selfCommand } from '../own-package.ts'
import { loadServer, watchCode } from './code.ts'

/** Where and for whom a file is served over HTTP, as the options say. */
export interface HttpPlace {
  /** Default 3000; 0 takes any that is free. */
  readonly port?: number
  readonly host: string
  /** Names that it answers to beside those of this machine. */
  readonly hosts?: readonly string[]
  readonly path: string
  /** Also the old pair of endpoints. */
  readonly sse?: boolean
  /** Also WebSockets. */
  readonly ws?: boolean
  /** Let everybody in who reaches the host. */
  readonly unprotected?: boolean
  /** The authorization server whose tokens are taken; the file may say more by exporting `auth`. */
  readonly issuer?: string
  /** The address by which tokens name this server. */
  readonly resource?: string
  /** Scopes that every request needs. */
  readonly scope?: readonly string[]
}

/** As the help says. */
const defaultPort = 3000

/** Where the server listens. */
interface Ready {
  readonly url: string
  readonly port: number
}

/** What is told while a file is served. */
interface ServeEvents {
  ready(at: Ready): void
  /** A new worker takes requests, after so long. */
  reloaded(file: string, ms: number): void
  /** The changed file does not start. */
  failed(file: string): void
}

/** Serves until it is interrupted. `words` are those that make a worker, where the file is watched. */
export function serveOverHttp(
  file: string,
  place: HttpPlace,
  words: readonly string[] | undefined,
  io: Io,
  tell: ServeEvents,
): Promise<number> {
  return words === undefined ? serve(file, place, io, tell) : watch(file, place, words, io, tell)
}

/** Serves until it is interrupted. */
async function serve(file: string, place: HttpPlace, io: Io, { ready }: ServeEvents): Promise<number> {
  const { server, auth: exported } = await loadServer(file)
  const auth = authOf(place, exported)
  const listening = await listen(() =>
    server.listen({
      port: place.port ?? defaultPort,
      host: place.host,
      hosts: [
        ...(place.hosts ?? []),
        ...addressesAt(place.host).map(address => (address.includes(':') ? `[${address}]` : address)),
      ],
      path: place.path,
      ...(place.sse === true && { ssePath: '/sse' }),
      ...(place.ws === true && { wsPath: '/ws' }),
      ...(auth !== undefined && { auth }),
    }),
  )
  const { url, port } = listening
  ready({ url, port })
  if (cluster.isWorker) process.send?.({ ready: { url, port } })
  await interrupted(io.signal)
  await listening.close()
  await server.close()
  return 0
}

/** What is said here counts before what the file exports. */
function authOf(
  { issuer, resource, scope: scopes = [], unprotected = false }: HttpPlace,
  exported: Auth | undefined,
): Auth | undefined {
  if (issuer === undefined && (resource !== undefined || scopes.length > 0))
    throw new CliError(
      '--resource and --scope need --issuer',
      'Add --issuer URL, the authorization server whose tokens are accepted',
    )
  if (unprotected && issuer !== undefined)
    throw new CliError('--unprotected and --issuer cannot be used together', 'Remove one of them')
  if (unprotected) return 'none'
  if (issuer === undefined) return exported
  try {
    return oauth({ issuer, ...given({ resource }), scopes })
  } catch (error) {
    throw new CliError(messageOf(error), 'Correct --issuer, --resource or --scope', { cause: error })
  }
}

/** Where others reach a server that listens everywhere: a page cannot take such an address for a name of its own. */
export function addressesAt(host: string): readonly string[] {
  if (host !== '0.0.0.0' && host !== '::') return []
  return Object.values(networkInterfaces())
    .flatMap(each => each ?? [])
    .filter(({ internal, family, scopeid }) => !internal && (family === 'IPv4' || (host === '::' && !scopeid)))
    .map(({ address }) => address)
}

/** Listens; a refusal to serve everybody becomes a failure that names the options. */
async function listen(open: () => Promise<Listening>): Promise<Listening> {
  try {
    return await open()
  } catch (error) {
    const unprotected = error instanceof Error && error.message.includes('without authorization')
    if (!unprotected) throw error
    throw new CliError(
      'Others on the network could call this server without authorization',
      'Remove --host, or pass --issuer and --resource, or pass --unprotected',
      { cause: error },
    )
  }
}

/** In a worker its parent interrupts as well. */
function interrupted(signal: AbortSignal): Promise<void> {
  if (!cluster.isWorker) return untilInterrupted(signal)
  const leaving = new Promise<void>(left => {
    process.on('message', said => said === 'leave' && left())
    process.on('disconnect', left)
  })
  return Promise.race([untilInterrupted(signal), leaving])
}

/** Serves and watches until it is interrupted. `words` are those that make a worker. */
async function watch(file: string, place: HttpPlace, words: readonly string[], io: Io, tell: ServeEvents): Promise<number> {
  // A worker that comes later must find the port of the first.
  const { port: wanted = defaultPort } = place
  const port = wanted === 0 ? await freePort(place.host) : wanted
  const { args } = selfCommand(['serve', file, '--port', String(port), ...words])
  cluster.setupPrimary({ exec: args[0] ?? '', args: args.slice(1), execArgv: process.execArgv })
  const leaving = new Set<Worker>()
  const { promise: firstStart, resolve: hasStarted } = Promise.withResolvers<void>()
  let last: Promise<void> = firstStart
  // Before the first start: what is saved while the code is being loaded counts too.
  const watching = watchCode(dirname(resolve(file)), changed => {
    last = last.then(() => reload(changed))
  })
  let current = await started()
  if (current === undefined) {
    watching.close()
    return 1
  }
  tell.ready(current.at)
  const reload = async (changed: string): Promise<void> => {
    const begun = performance.now()
    const next = io.signal.aborted ? undefined : await started()
    if (next === undefined) return tell.failed(changed)
    if (current !== undefined) leave(current.worker)
    current = next
    tell.reloaded(changed, performance.now() - begun)
  }
  const leave = (worker: Worker): void => {
    leaving.add(worker)
    worker.once('exit', () => leaving.delete(worker))
    if (worker.isConnected()) worker.send('leave')
  }
  hasStarted()
  await interrupted(io.signal)
  watching.close()
  await last
  leave(current.worker)
  await Promise.all([...leaving].map(gone))
  return 0
}

/** Resolves when it takes requests; with nothing where it ends before. Its own words on standard error say why. */
function started(): Promise<{ readonly worker: Worker; readonly at: Ready } | undefined> {
  const worker = cluster.fork()
  return new Promise(resolve => {
    worker.on('message', (said: { readonly ready?: Ready }) => {
      if (said.ready !== undefined) resolve({ worker, at: said.ready })
    })
    worker.once('exit', () => resolve(undefined))
  })
}

/** What does not end by itself is ended. */
const goneMs = 6_000

/** Resolves when the worker has ended. */
async function gone(worker: Worker): Promise<void> {
  if (worker.isDead()) return
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), goneMs)
  await once(worker, 'exit')
  clearTimeout(timer)
}

/** A port that nobody has now. */
async function freePort(host: string): Promise<number> {
  const probe = createServer().listen(0, host)
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
