/** `--web` of the verbs that can show a server in the browser: its options, and the server as the console takes it. */
import type { PlaygroundOptions } from '../console/index.ts'
import { portOf } from './arguments.ts'
import { type ConnectingOptions, fetchMs, isFetched, optionsFor, probeMs, targetFor } from './connecting.ts'
import type { Io } from './io.ts'
import type { CommandLike } from './program.ts'
import type { ResolvedTarget } from './target.ts'

/** The options of verbs that open a console. */
export interface WebOptions {
  /** Serve the web console instead of printing. */
  readonly web?: boolean
  /** The port of the console; undefined: the usual one, or a free one where that is taken. */
  readonly port?: number
  /** False: leave the browser alone. */
  readonly open?: boolean
  /** The folder of tapes that the console records. */
  readonly tapes?: string
}

/** Declares `--web` and what goes with it. */
export function webOptions(command: CommandLike, about: string): CommandLike {
  return command
    .option('--web', about)
    .option('--port <number>', 'With --web: serve the console at this port of 127.0.0.1 (default: 7425, or a free one)', {
      parse: portOf,
    })
    .option('--tapes <folder>', 'With --web: keep recordings in this folder (default: tapes)')
    .option('--no-open', 'With --web: do not open the browser')
}

/** A target as the playground of a console takes it. What its program says on standard error is shown there. */
export function playgroundOf(
  resolved: ResolvedTarget,
  options: ConnectingOptions & Pick<WebOptions, 'tapes'> & { readonly reveal?: boolean },
  io: Io,
): PlaygroundOptions {
  const { target, label, again } = resolved
  const { signal: _, ...connecting } = optionsFor(resolved, options, io)
  return {
    ...{ target: targetFor(resolved, options, io), label, again },
    connect: { ...(isFetched(target) && { timeout: fetchMs }), probeTimeout: probeMs(target), ...connecting },
    ...(options.reveal === true && { reveal: true }),
    ...(options.tapes !== undefined && { tapes: options.tapes }),
  }
}
