/**
 * Keeps a gateway to what its file says: when that, a file that it includes, or one with variables changes, or when it is told so by a
 * signal. What is wrong is told, and the gateway goes on with what was right.
 */
import { readFile } from 'node:fs/promises'
import { isatty } from 'node:tty'
import { realClock } from '../../core/clock.ts'
import { type Gateway, type GatewayConfig, type Reloaded, readGatewayFile } from '../../gateway/index.ts'
import { faultText } from '../../host/config/read.ts'
import { watchText } from '../../host/foundation.ts'
import { messageOf } from '../../stores/store.ts'

/** What following a file needs beside the gateway. */
interface FollowOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Told the mistakes of each reading. */
  readonly onFaults?: (faults: GatewayConfig<unknown>['faults']) => void
  /** Told what came of it, a line each. */
  readonly tell: (line: string, kind: 'done' | 'warning' | 'mistake') => void
}

/** The part of a gateway that reads its file again. */
type Reloading = Pick<Gateway, 'reload'>

/** Watches the files of a gateway, and has them read again one time after the other. */
class Following {
  readonly #file: string
  readonly #options: FollowOptions
  /** By path: the way to stop. */
  readonly #watched = new Map<string, () => Promise<void>>()
  readonly #opened = Promise.withResolvers<Reloading | undefined>()
  /** Stops listening to the signal. */
  readonly #stopListening: () => void
  #wanted = false
  #closed = false
  /** The reloads so far, one after the other. */
  #working: Promise<void> = Promise.resolve()

  constructor(file: string, options: FollowOptions) {
    this.#file = file
    this.#options = options
    this.#stopListening = onHangup(() => this.#changed())
  }

  /** These are to be watched, and no others. */
  async watch(paths: readonly string[]): Promise<void> {
    for (const [path, stop] of this.#watched) {
      if (paths.includes(path)) continue
      this.#watched.delete(path)
      await stop()
    }
    for (const path of paths) if (!this.#watched.has(path)) this.#watched.set(path, await watching(path, () => this.#changed()))
  }

  /** The gateway is there. What has changed until now is looked at. */
  open(gateway: Reloading): void {
    this.#opened.resolve(gateway)
  }

  /** Ends after the reload that is under way. */
  async close(): Promise<void> {
    this.#closed = true
    this.#stopListening()
    for (const stop of this.#watched.values()) await stop()
    this.#opened.resolve(undefined)
    await this.#working
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Has the file read once more; several changes at once are one. */
  #changed(): void {
    if (this.#wanted) return
    this.#wanted = true
    const { tell } = this.#options
    this.#working = this.#working.then(() => this.#look()).catch(error => tell(messageOf(error), 'mistake'))
  }

  /** Reads the file, reloads the gateway, and watches the files that count now. */
  async #look(): Promise<void> {
    const gateway = await this.#opened.promise
    if (gateway === undefined || this.#closed) return
    // What changes from here on is one more.
    this.#wanted = false
    await this.watch(await reloaded(this.#file, gateway, this.#options))
  }
}

/** To be begun before the gateway reads its file, so that no change is missed. */
export async function followFile(
  { file, files }: Pick<GatewayConfig<unknown>, 'file' | 'files'>,
  options: FollowOptions,
): Promise<Following> {
  const following = new Following(file, options)
  await following.watch(files)
  return following
}

/** Watches one file, also one that is not there. */
async function watching(path: string, changed: () => void): Promise<() => Promise<void>> {
  const text = (): Promise<string> => readFile(path, 'utf8').catch(() => '')
  let gone = false
  const failed = (): void => {
    // Told when the file is read as a whole, and once.
    if (!gone) changed()
    gone = true
  }
  const told = async (): Promise<void> => {
    gone = false
    changed()
  }
  return watchText(path, await text(), { clock: realClock, changed: told, failed })
}

/** Gives the files that are to be watched from now on. */
async function reloaded(
  file: string,
  gateway: Pick<Gateway, 'reload'>,
  { env, tell, onFaults }: FollowOptions,
): Promise<readonly string[]> {
  const { faults, files } = await readGatewayFile(file, { env })
  onFaults?.(faults)
  for (const fault of faults) tell(faultText(fault), 'mistake')
  if (faults.length > 0) tell(`${file} has a mistake: the previous settings stay in force`, 'mistake')
  else report(file, await gateway.reload(), tell)
  return files
}

/** Tells what a reload has changed, and what waits for a restart. */
function report(file: string, { started, stopped, restarted, pending }: Reloaded, tell: FollowOptions['tell']): void {
  const parts = Object.entries({ started, ended: stopped, restarted }).flatMap(([what, names]) =>
    names.length === 0 ? [] : `${what} ${names.join(', ')}`,
  )
  tell(`${file} was reloaded${parts.length === 0 ? '' : `: ${parts.join('; ')}`}`, 'done')
  if (pending.length > 0)
    tell(
      `${pending.join(', ')} changed in ${file}, but ${pending.length === 1 ? 'takes' : 'take'} effect only after a restart`,
      'warning',
    )
}

/** A terminal that is closed ends what runs in it by the same signal by which others say: read it again. */
function onHangup(changed: () => void): () => void {
  const inTerminal = isatty(0)
  const heard = (): void => {
    if (inTerminal && !isatty(0)) process.kill(process.pid, 'SIGTERM')
    else changed()
  }
  process.on('SIGHUP', heard)
  return () => void process.off('SIGHUP', heard)
}
