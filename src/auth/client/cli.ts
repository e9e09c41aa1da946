/** Signing in from a program on somebody's machine: the system's browser, and a callback on this machine. */
import type { Duration } from '../../core/duration.ts'
import type { Browser } from './browser.ts'

export interface CliOptions {
  /** The port for the way back, where the client is registered with a fixed one. Default: any free one. */
  readonly port?: number
  /** The path of the way back. Default `/callback`. */
  readonly path?: string
  /** How long the user may take. Default 5 min. */
  readonly timeout?: Duration
  /** Shows the address instead of the system's browser. */
  readonly open?: (url: URL) => void | Promise<void>
  /** Says what happens. Default: a line on stderr with the address, for those who must open it by hand. */
  readonly onUrl?: (url: URL) => void
}

/**
 * Opens the system's browser and waits for the user to come back to a callback on 127.0.0.1.
 * @example
 * await connect(url, { auth: oauth({ browser: cli() }) })
 */
export function cli(options: CliOptions = {}): Browser {
  let loaded: Promise<Required<Pick<Browser, 'authorize'>> & { redirectUri(): Promise<string> }> | undefined
  const load = () => {
    loaded ??= import('./loopback.ts').then(({ openLoopback }) => openLoopback(options))
    return loaded
  }
  return {
    redirectUri: async () => (await load()).redirectUri(),
    authorize: async (url, given) => (await load()).authorize(url, given),
  }
}
