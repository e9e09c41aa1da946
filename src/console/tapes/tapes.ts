/** The tapes of a console: files in one folder, that are recorded, replayed against the server of now, and served as mock servers. */
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Cancel } from '../../core/clock.ts'
import { shellWord } from '../../core/suggestion.ts'
import type { ClientListener } from '../../recording/listener.ts'
import { openTape, serveTape } from '../../recording/mock-server.ts'
import { messageOf } from '../../stores/store.ts'
import { replayTape } from '../../testing/connect.ts'
import type { TapeDetail, TapeReplay, TapeReplayWish, TapeRow, TapeServeWish, TapeService, TapeWish } from '../contract/tapes.ts'
import { ConsoleFailure } from '../failure.ts'
import type { Playground } from '../playground/playground.ts'
import { TapeRecorder } from './tape-recorder.ts'

const ending = '.tape'
const mostListed = 500
/** Longer tapes are listed without the number of their frames. */
const mostCounted = 64 * 1024 * 1024
const mostServed = 4
const mostDifferences = 1_000
const tellMs = 1_000

interface Recording {
  readonly name: string
  readonly by: string
  readonly recorder: TapeRecorder
}

type Counted = Pick<TapeRow, 'began' | 'frames' | 'connections' | 'why'>

/** The folder of tapes, and what is done with them. */
export class Tapes {
  readonly folder: string
  readonly #playground: Playground
  readonly #changed: (row: TapeRow) => void
  readonly #counted = new Map<string, Counted & { readonly key: string }>()
  readonly #by = new Map<string, string>()
  readonly #replays = new Map<string, TapeReplay>()
  readonly #served = new Map<string, TapeService & { readonly listener: ClientListener }>()
  #recording: Recording | undefined
  #told: Cancel | undefined

  constructor(playground: Playground, folder: string, changed: (row: TapeRow) => void) {
    this.#playground = playground
    this.folder = resolve(folder)
    this.#changed = changed
  }

  /** All in the folder, by name. */
  async list(): Promise<readonly TapeRow[]> {
    const found = await readdir(this.folder).catch(() => [])
    const names = found.filter(name => isName(name)).sort()
    const rows = await Promise.all(names.slice(0, mostListed).map(name => this.#row(name)))
    return rows.filter(row => row !== undefined)
  }

  async detail(name: string): Promise<TapeDetail> {
    const tape = await this.#found(name)
    const file = join(this.folder, name)
    return { tape, file, command: `vivarium replay ${shellWord(file)} --against ${this.#playground.again}` }
  }

  /** Starts a recording; with `stop` it ends at once. */
  async start({ name, past = false, stop = false }: TapeWish, by: string): Promise<TapeRow> {
    if (this.#recording !== undefined)
      throw new ConsoleFailure('JOB_RUNNING', `${this.#recording.name} is being recorded.`, 'Stop it first.', {
        job: this.#recording.name,
      })
    await mkdir(this.folder, { recursive: true })
    const chosen = await this.#freeName(name)
    // Somebody else may have begun in the meantime.
    if (this.#recording !== undefined) throw new ConsoleFailure('JOB_RUNNING', 'A tape is being recorded.', 'Stop it first.')
    const { traffic, clock, label } = this.#playground
    const file = join(this.folder, chosen)
    const recorder = new TapeRecorder({ file, target: label, traffic, past, clock, wrote: () => this.#tellLater(chosen) })
    this.#by.set(chosen, by)
    this.#recording = { name: chosen, by, recorder }
    return stop ? this.stop(chosen) : this.#tell(chosen)
  }

  /** Ends the recording of a tape. */
  async stop(name: string): Promise<TapeRow> {
    const { recorder } = this.#recordingOf(name)
    this.#recording = undefined
    try {
      recorder.stop()
    } catch (error) {
      throw new ConsoleFailure('UNAVAILABLE', `The tape could not be written: ${messageOf(error)}`, 'Check the disk.')
    }
    return this.#tell(name)
  }

  /** The last replay of a tape. */
  async replayed(name: string): Promise<TapeReplay | undefined> {
    await this.#found(name)
    return this.#replays.get(name)
  }

  /** Sends a tape to the server of now; what it answers otherwise is known when the replay has ended. */
  async replay(name: string, { server, ignore = [] }: TapeReplayWish, by: string): Promise<TapeReplay> {
    this.#playground.serverNamed(server)
    const tape = await this.#readable(name)
    for (const [other, { state }] of this.#replays)
      if (state === 'running')
        throw new ConsoleFailure('JOB_RUNNING', `${other} is being replayed.`, 'Wait until it ends.', { job: other })
    const { clock, target, headers } = this.#playground
    const begun = { by, startedAt: clock.now(), sent: 0, conversations: 0, found: 0 } as const
    const become = (replay: TapeReplay): void => {
      this.#replays.set(name, replay)
      void this.#tell(name).catch(() => undefined)
    }
    become({ ...begun, state: 'running' })
    const ended = (): { readonly endedAt: number } => ({ endedAt: clock.now() })
    replayTape(tape, target, { headers, ignore }).then(
      ({ differences, sent, conversations }) =>
        become({
          ...begun,
          ...{ state: 'done', ...ended(), sent, conversations, found: differences.length },
          differences: differences
            .slice(0, mostDifferences)
            .map(each => this.#playground.traffic.redaction.value(each) as typeof each),
        }),
      error => become({ ...begun, state: 'failed', ...ended(), why: this.#playground.traffic.redaction.text(messageOf(error)) }),
    )
    return this.#replays.get(name) as TapeReplay
  }

  /** Serves a tape as a mock server on loopback. */
  async serve(name: string, { faults = [], seed = 1, speed }: TapeServeWish, by: string): Promise<TapeRow> {
    const tape = await this.#readable(name)
    if (this.#served.has(name)) throw new ConsoleFailure('JOB_RUNNING', 'The tape is served already.', 'Stop that first.')
    if (this.#served.size >= mostServed)
      throw new ConsoleFailure('TOO_MANY', `${mostServed} tapes are served already.`, 'Stop one of them.')
    const listener = await serveTape(tape, { client: {}, faults, seed, ...(speed !== undefined && { speed }) }).catch(
      (error: unknown) => {
        if (!(error instanceof TypeError)) throw error
        throw new ConsoleFailure('INVALID_INPUT', error.message, 'Correct the fault.', { member: 'faults' })
      },
    )
    this.#served.set(name, { ...{ url: listener.url ?? '', faults, seed, since: this.#playground.clock.now(), by }, listener })
    return this.#tell(name)
  }

  /** Ends the serving of a tape. */
  async unserve(name: string): Promise<void> {
    await this.#found(name)
    const served = this.#served.get(name)
    this.#served.delete(name)
    await served?.listener.close()
    await this.#tell(name)
  }

  async close(): Promise<void> {
    this.#told?.()
    const recording = this.#recording
    this.#recording = undefined
    recording?.recorder.stop()
    const served = [...this.#served.values()]
    this.#served.clear()
    await Promise.all(served.map(({ listener }) => listener.close()))
  }

  async #found(name: string): Promise<TapeRow> {
    const row = isName(name) ? await this.#row(name) : undefined
    if (row === undefined) throw new ConsoleFailure('NOT_FOUND', 'There is no tape of this name.', 'Reload the list of tapes.')
    return row
  }

  async #readable(name: string) {
    const { recording, why } = await this.#found(name)
    if (recording)
      throw new ConsoleFailure('JOB_RUNNING', 'The tape is being recorded.', 'Stop the recording first.', { job: name })
    if (why !== undefined) throw new ConsoleFailure('INVALID_INPUT', why, 'Choose another tape.', { member: 'name' })
    return openTape(join(this.folder, name))
  }

  #recordingOf(name: string): Recording {
    if (this.#recording?.name === name) return this.#recording
    throw new ConsoleFailure('NOT_FOUND', 'This tape is not being recorded.', 'Reload the list of tapes.')
  }

  /** An existing file is never replaced. */
  async #freeName(wanted: string | undefined): Promise<string> {
    if (wanted !== undefined) {
      const name = wanted.endsWith(ending) ? wanted : `${wanted}${ending}`
      if (!isName(name))
        throw new ConsoleFailure(
          'INVALID_INPUT',
          'The name is not valid.',
          'Give letters, digits, dots, underscores and hyphens, at most 64.',
          { member: 'name' },
        )
      if (await isThere(join(this.folder, name)))
        throw new ConsoleFailure('INVALID_INPUT', `${name} exists already.`, 'Choose another name.', { member: 'name' })
      return name
    }
    const base =
      this.#playground.name
        .replace(/[^\w-]+/g, '-')
        .replace(/^[-_]+|-+$/g, '')
        .slice(0, 40) || 'session'
    for (let n = 1; ; n++) if (!(await isThere(join(this.folder, `${base}-${n}${ending}`)))) return `${base}-${n}${ending}`
  }

  async #row(name: string): Promise<TapeRow | undefined> {
    const file = await lstat(join(this.folder, name)).catch(() => undefined)
    // A link could lead out of the folder.
    if (file?.isFile() !== true) return undefined
    const { name: recorded, recorder } = this.#recording ?? {}
    const isRecording = recorder !== undefined && recorded === name
    const counted = isRecording
      ? { began: recorder.began, ...recorder.counts }
      : await this.#count(name, file.size, file.mtimeMs, `${file.size} ${file.mtimeMs}`)
    const by = this.#by.get(name)
    const { differences: _, ...replay } = this.#replays.get(name) ?? {}
    const { listener: __, ...serving } = this.#served.get(name) ?? {}
    return {
      ...{ name, bytes: file.size, recording: isRecording, ...counted },
      ...(by !== undefined && { by }),
      ...('state' in replay && { replay: replay as Omit<TapeReplay, 'differences'> }),
      ...('url' in serving && { serving: serving as TapeService }),
    }
  }

  async #count(name: string, size: number, changedAt: number, key: string): Promise<Counted> {
    const known = this.#counted.get(name)
    if (known?.key === key) {
      const { key: _, ...counted } = known
      return counted
    }
    const counted =
      size > mostCounted ? { began: changedAt, frames: 0, connections: 0 } : await countedIn(join(this.folder, name), changedAt)
    if (this.#counted.size >= mostListed) this.#counted.clear()
    this.#counted.set(name, { ...counted, key })
    return counted
  }

  /** Tells how the tape is now. */
  async #tell(name: string): Promise<TapeRow> {
    const row = await this.#found(name)
    this.#changed(row)
    return row
  }

  #tellLater(name: string): void {
    this.#told ??= this.#playground.clock.setTimeout(
      () => {
        this.#told = undefined
        void this.#tell(name).catch(() => undefined)
      },
      tellMs,
      true,
    )
  }
}

async function countedIn(file: string, changedAt: number): Promise<Counted> {
  try {
    const { header, conversations } = await openTape(file)
    const frames = conversations.reduce((sum, each) => sum + each.frames.length, 0)
    return { began: Date.parse(header.began), frames, connections: conversations.length }
  } catch (error) {
    return { began: changedAt, frames: 0, connections: 0, why: messageOf(error).slice(0, 300) }
  }
}

function isName(name: string): boolean {
  return /^[A-Za-z0-9][\w.-]{0,58}\.tape$/.test(name)
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}
