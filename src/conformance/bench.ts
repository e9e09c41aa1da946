/** The bench of one scenario: opens connections, judges, and puts everything away afterwards. */
import type { AuthTrial } from './auth/trial.ts'
import { type Advertised, type Bench, Failed, type Frame, type OpenOptions, type Scenario, Skipped } from './scenario.ts'
import type { Connector } from './wire/connector.ts'
import { Guarded, NotSpoken } from './wire/hello.ts'
import type { WirePeer } from './wire/peer.ts'

export interface BenchParts {
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
}

interface Opened {
  readonly peer: WirePeer
  readonly options: OpenOptions
}

const shownFrames = 8

/** Runs it and says how it ended; nothing is open afterwards. */
export async function runOnBench(scenario: Scenario, parts: BenchParts): Promise<Verdict> {
  const opened: Opened[] = []
  const closing: (() => unknown)[] = []
  const warnings: string[] = []
  const noted: Frame[] = []
  const bench = createBench(parts, opened, closing, warnings, noted)
  const frames = (): readonly Frame[] => [...opened.flatMap(({ peer }) => peer.frames), ...noted]
  let verdict: Verdict
  try {
    await Promise.race([scenario.run(bench), stopped(parts.signal)])
    verdict = { status: 'passed', message: warnings.join('; '), frames: [] }
  } catch (error) {
    verdict = verdictOf(error, frames())
  }
  for (const fn of closing.reverse()) await fn()
  const reusable = verdict.status === 'passed' || verdict.status === 'skipped'
  await Promise.all(opened.map(({ peer, options }) => parts.connector.release(peer, options, reusable)))
  return verdict
}

function createBench(parts: BenchParts, opened: Opened[], closing: (() => unknown)[], warnings: string[], noted: Frame[]): Bench {
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
    async open(options = {}) {
      const raw = await connector.open(options)
      opened.push({ peer: raw, options })
      return raw
    },
    expect(condition, says, frames) {
      if (!condition) fail(says, frames)
    },
    fail,
    warn: says => void warnings.push(says),
    leave(why) {
      throw new Skipped(why)
    },
    note: frame => void noted.push(frame),
    onClose: fn => void closing.push(fn),
  }
}

function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new Failed('The scenario did not come to an end in its time'))
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
