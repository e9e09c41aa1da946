/** The bench of one scenario: opens connections, judges, and puts everything away afterwards. */

import { isRecord } from '../jsonrpc/message.ts'
import type { AuthTrial } from './auth/issuer.ts'
import { type Advertised, type Bench, Failed, type Frame, type OpenOptions, type Scenario, Skipped } from './scenario.ts'
import type { Connector } from './wire/connector.ts'
import { Guarded, NotSpoken } from './wire/envelope.ts'
import type { SendGuard, WirePeer } from './wire/peer.ts'
import { promised } from './wire/raw-peer.ts'

/** What a bench is made of. */
interface BenchParts {
  readonly peer: Advertised
  readonly allowWrites: boolean
  readonly signal: AbortSignal
  readonly auth: AuthTrial | undefined
  readonly connector: Connector
}

/** How a scenario ended. */
export interface Verdict {
  readonly status: 'passed' | 'failed' | 'skipped' | 'error'
  readonly message: string
  readonly frames: readonly Frame[]
  /** Not one connection could be opened, though the scenario wanted one. */
  readonly unmet?: boolean
}

interface OpenedPeer {
  readonly peer: WirePeer
  readonly options: OpenOptions
}

/** What a scenario has in its hands, and whether it is over: what it still begins then is nobody's. */
interface Hands {
  readonly opened: OpenedPeer[]
  readonly closing: (() => unknown)[]
  readonly warnings: string[]
  readonly noted: Frame[]
  /** Connections that it wanted. */
  wanted: number
  over: boolean
}

const shownFrames = 8
/** The longest time for putting one thing away. */
const closeMs = 5_000

/** Runs it and says how it ended; nothing is open afterwards. */
export async function runOnBench(scenario: Scenario, parts: BenchParts): Promise<Verdict> {
  const hands: Hands = { opened: [], closing: [], warnings: [], noted: [], wanted: 0, over: false }
  const bench = createBench(parts, hands)
  const frames = (): readonly Frame[] => [...hands.opened.flatMap(({ peer }) => peer.frames), ...hands.noted]
  let verdict: Verdict
  try {
    await Promise.race([promised(() => scenario.run(bench)), stopped(parts.signal)])
    verdict = { status: 'passed', message: hands.warnings.join('; '), frames: [] }
  } catch (error) {
    verdict = verdictOf(error, frames())
  }
  hands.over = true
  // What a scenario's own answers to the peer ran into is the reason for whatever followed.
  const [fault] = hands.opened.flatMap(({ peer }) => peer.faults)
  if (fault !== undefined) verdict = verdictOf(fault.error, frames())
  const unclosed = await putAway(hands.closing)
  if (unclosed !== undefined && verdict.status !== 'failed') verdict = verdictOf(unclosed.error, frames())
  const reusable = verdict.status === 'passed' || verdict.status === 'skipped'
  await Promise.all(hands.opened.map(({ peer, options }) => parts.connector.release(peer, options, reusable)))
  const judged = verdict.status === 'failed' || verdict.status === 'error'
  return judged && hands.opened.length === 0 && hands.wanted > 0 ? { ...verdict, unmet: true } : verdict
}

/** All of it, last one first, whatever one of them does; the first that went wrong is told. */
async function putAway(closing: readonly (() => unknown)[]): Promise<{ readonly error: unknown } | undefined> {
  let wrong: { readonly error: unknown } | undefined
  for (const close of closing.toReversed()) {
    const late = AbortSignal.timeout(closeMs)
    try {
      await Promise.race([promised(close), expired(late)])
    } catch (error) {
      wrong ??= { error }
    }
  }
  return wrong
}

function expired(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`Closing took longer than ${closeMs} ms`)), { once: true })
  })
}

function createBench(parts: BenchParts, hands: Hands): Bench {
  const { peer, allowWrites, signal, auth, connector } = parts
  const fail = (says: string, frames?: readonly (Frame | undefined)[]): never => {
    throw new Failed(says, frames)
  }
  return {
    revision: peer.revision,
    carrier: peer.carrier,
    peer,
    allowWrites,
    signal,
    auth,
    open: options => opening(connector, hands, options),
    expect(condition, says, frames) {
      if (!condition) fail(says, frames)
    },
    fail,
    warn: says => void hands.warnings.push(says),
    leave(why) {
      throw new Skipped(why)
    },
    note: frame => void hands.noted.push(frame),
    onClose: fn => void hands.closing.push(fn),
  }
}

async function opening(connector: Connector, hands: Hands, options: OpenOptions = {}): Promise<WirePeer> {
  const over = (): Error => new Error('The scenario has ended and can open no more connections')
  if (hands.over) throw over()
  hands.wanted++
  const peer = await connector.open(options)
  if (hands.over) {
    await connector.release(peer, options, false)
    throw over()
  }
  hands.opened.push({ peer, options })
  return peer
}

/** Why there is no verdict on what a stop of the run has met. */
export const stoppedWhy = 'the run was stopped'

function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => {
      const late = signal.reason instanceof Error && signal.reason.name === 'TimeoutError'
      reject(late ? new Failed('The scenario exceeded its time limit') : new Skipped(stoppedWhy))
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}

function verdictOf(error: unknown, frames: readonly Frame[]): Verdict {
  if (error instanceof Skipped) return { status: 'skipped', message: error.message, frames: [] }
  if (error instanceof Failed) {
    const shown = error.frames.length > 0 ? error.frames : frames.slice(-shownFrames)
    return { status: 'failed', message: error.message, frames: shown }
  }
  const message = error instanceof Error ? error.message : String(error)
  const status = error instanceof NotSpoken || error instanceof Guarded ? 'failed' : 'error'
  return { status, message, frames: frames.slice(-shownFrames) }
}

// ── The last thing before the wire: a call of a tool that may write does not leave the kit unless that was allowed.

/** Decides about each frame before it is sent. */
interface WriteGuard {
  readonly check: SendGuard
  /** From here on it is known which tools there are. */
  learn(peer: Advertised): void
}

/** Lets everything pass where writing is allowed, and until the tools are known. */
export function writeGuard(allowWrites: boolean): WriteGuard {
  let known: Advertised | undefined
  function check(message: unknown): void {
    if (allowWrites) return
    if (Array.isArray(message)) return message.forEach(check)
    const name = calledTool(message)
    if (name === undefined || known?.tool(name) === undefined || known.mayCall(name)) return
    throw new Error(`The kit does not call the tool ${name}, because it may write (use --allow-writes)`)
  }
  return {
    check,
    learn(peer) {
      known = peer
    },
  }
}

function calledTool(message: unknown): string | undefined {
  if (!isRecord(message) || !isRecord(message['params'])) return undefined
  const isCall = message['method'] === 'tools/call' || message['method'] === 'tools/invoke'
  const name = message['params']['name']
  return isCall && typeof name === 'string' ? name : undefined
}
