/**
 * Questions of upstreams (elicitation, sampling, roots), passed to the client whose call caused them, in the way that the client's
 * revision supports. Also `Pages`: the URLs that URL elicitations sent clients to.
 */

import { Tally } from '../../core/occupancy.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { declaredSettings } from '../../engine/extensions.ts'
import type { Method } from '../../engine/method.ts'
import { elicit, elicitationComplete, formFits, takesElicitation } from '../../features/mcp/elicitation/messages.ts'
import { listRoots } from '../../features/mcp/roots/messages.ts'
import { askRoots } from '../../features/mcp/roots/server.ts'
import { createMessage, type SamplingParams } from '../../features/mcp/sampling/messages.ts'
import { sample } from '../../features/mcp/sampling/server.ts'
import { takingTasks, tasksExtension } from '../../features/mcp/tasks/messages.ts'
import { mediaExtension } from '../../features/reliability/media/messages.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip, echo } from '../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { Capabilities, Peer } from '../../revisions/index.ts'
import { type Sharer, sharerOf } from '../shares.ts'
import type { UpstreamCall } from './upstream-call.ts'

const methods = new Map<string, Method>([elicit, createMessage, listRoots].map(method => [method.name, method as Method]))

/** Reads a question from an input-required result and checks its params. */
export function questionIn(request: unknown): { readonly method: Method; readonly params: Params } {
  const { method: name, params } = isRecord(request) ? request : {}
  const method = typeof name === 'string' ? methods.get(name) : undefined
  if (method === undefined)
    throw new McpError('method-not-found', `The server sent the request ${echo(name)}, which the gateway does not support`)
  const given = isRecord(params) ? params : {}
  const fault = method.params.check(given)
  if (fault === undefined) return { method, params: given }
  const where = fault.path === '' ? 'params' : `params.${clip(fault.path)}`
  throw new McpError('invalid-result', `The server sent an invalid ${method.name}: ${where} must be ${fault.expected}`)
}

/** Asks the client. Rejects with a named error where the client did not declare the capability. */
export function askClient(
  exchange: Exchange,
  method: Method,
  params: Params,
  options: { readonly key: string; readonly signal: AbortSignal },
): Promise<unknown> {
  const { _meta, task, ...asked } = params
  if (method.name === elicit.name) return passElicitation(exchange, asked, options)
  if (method.name === createMessage.name) return sample(exchange, asked as unknown as SamplingParams, options)
  return askRoots(exchange, options).then(roots => ({ roots }))
}

/** Adds an `elicitationId` where the client's revision needs one and the upstream sent none. */
async function passElicitation(
  exchange: Exchange,
  params: Params,
  options: { readonly key: string; readonly signal: AbortSignal },
): Promise<unknown> {
  const mode = params['mode'] === 'url' ? 'url' : 'form'
  const fits = mode === 'url' || formFits(exchange.peer.revision, params['requestedSchema'])
  const message = params['message'] as string
  // `once` keeps the id stable when the same request is answered again.
  const named =
    mode === 'form' || params['elicitationId'] !== undefined
      ? {}
      : { elicitationId: await exchange.once(`elicitation-id ${options.key}`, () => crypto.randomUUID()) }
  return exchange.ask(elicit, { ...params, ...named, mode, message } as const, {
    ...options,
    kind: 'elicit',
    requires: { elicitation: mode === 'url' ? { url: {} } : {} },
    allowed: takesElicitation(exchange.peer, mode) && fits,
    accepts: value => isRecord(value) && ['accept', 'decline', 'cancel'].includes(value['action'] as string),
  })
}

const declarations: Capabilities[] = []

/**
 * The capabilities that a request to an upstream declares on behalf of a caller. There are at most 256 combinations; each is one shared
 * object, so that it is serialised once.
 */
export function declaredFor({ peer }: Exchange): Capabilities {
  const bits = asksOf(peer) + hearsOf(peer)
  declarations[bits] ??= declarationOf(bits)
  return declarations[bits]
}

/** What the client can be asked, as bits. */
function asksOf(peer: Peer): number {
  const { capabilities, revision } = peer
  if (revision.asks === 'none') return 0
  const sampling = capabilities['sampling']
  return (
    (takesElicitation(peer, 'form') ? 1 : 0) +
    (takesElicitation(peer, 'url') ? 2 : 0) +
    (isRecord(sampling) ? 4 : 0) +
    (isRecord(sampling) && isRecord(sampling['tools']) ? 8 : 0) +
    (isRecord(capabilities['roots']) ? 16 : 0)
  )
}

/** Extensions that appear only in results for clients that declare them, as bits. */
function hearsOf(peer: Peer): number {
  return (
    (peer.revision.era === 'request' && declaredSettings(peer, tasksExtension) !== undefined ? 32 : 0) +
    (declaredSettings(peer, provenanceExtension) !== undefined ? 64 : 0) +
    (declaredSettings(peer, mediaExtension) !== undefined ? 128 : 0)
  )
}

/** The capabilities that a set of bits stands for. */
function declarationOf(bits: number): Capabilities {
  const heard = {
    ...((bits & 32) !== 0 && takingTasks.extensions),
    ...((bits & 64) !== 0 && { [provenanceExtension]: {} }),
    ...((bits & 128) !== 0 && { [mediaExtension]: {} }),
  }
  return {
    ...((bits & 3) !== 0 && { elicitation: { ...((bits & 1) !== 0 && { form: {} }), ...((bits & 2) !== 0 && { url: {} }) } }),
    ...((bits & 4) !== 0 && { sampling: (bits & 8) !== 0 ? { tools: {} } : {} }),
    ...((bits & 16) !== 0 && { roots: {} }),
    ...(bits >= 32 && { extensions: heard }),
  }
}

// Pages: which client was sent to which URL, so that `notifications/elicitation/complete` reaches it.

/** Pages that are remembered. */
const most = 1_000

/** Remembers which clients were sent to a page, up to a limit, and notifies them when the page is done. */
export class Pages {
  readonly #sent = new Map<string, Exchange>()

  /** A caller was sent to a page. */
  sent(upstream: string, elicitationId: string, { first }: UpstreamCall): void {
    const key = `${upstream}\0${elicitationId}`
    this.#sent.delete(key)
    this.#sent.set(key, first)
    if (this.#sent.size > most) this.#forget()
  }

  /** Drops the oldest page of the client that has the most, so that no client evicts the pages of others. */
  #forget(): void {
    const counts = new Tally<Sharer>()
    let [most, busiest]: [number, Sharer | undefined] = [0, undefined]
    for (const { caller } of this.#sent.values()) {
      const sharer = sharerOf(caller)
      counts.add(sharer, 1)
      if (counts.of(sharer) > most) [most, busiest] = [counts.of(sharer), sharer]
    }
    const oldest = [...this.#sent].find(([, { caller }]) => sharerOf(caller) === busiest)?.[0]
    if (oldest !== undefined) this.#sent.delete(oldest)
  }

  /** Notifies the client that was sent there, once. */
  done(upstream: string, elicitationId: string): void {
    const key = `${upstream}\0${elicitationId}`
    const exchange = this.#sent.get(key)
    if (exchange === undefined) return
    this.#sent.delete(key)
    // The call may be over; then the notification goes out on the conversation.
    if (!exchange.notify(elicitationComplete, { elicitationId }))
      exchange.engine.notify(exchange.conversation, elicitationComplete, { elicitationId })
  }
}

/** Asks the client to visit pages that an error named, where its revision asks in results. True if it accepts all of them. */
export async function visits(upstreamCall: UpstreamCall, pages: readonly Params[]): Promise<boolean> {
  const { peer, signal } = upstreamCall.first
  if (peer.revision.asks !== 'result' || !takesElicitation(peer, 'url')) return false
  const asked = pages.map(page => upstreamCall.ask(elicit, { ...page, mode: 'url' }, signal))
  const answers = await Promise.all(asked)
  return answers.every(answer => isRecord(answer) && answer['action'] === 'accept')
}
