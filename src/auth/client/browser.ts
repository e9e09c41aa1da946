/**
 * The step that needs a person: the authorization server is shown, and sends the person back with an answer. `cli()` uses the
 * system's browser.
 */
import type { Duration } from '../../core/clock.ts'

/** Shows an address to the user and waits for the way back. Make your own, or use `cli()`. */
export interface Browser {
  /** Where the authorization server sends the user back to; a function where that is known only once something listens. */
  readonly redirectUri: string | (() => Promise<string>)
  /** Shows the address, which is always http or https, and gives the address (or its parameters) at which the user came back. */
  authorize(url: URL, options: { readonly signal: AbortSignal }): Promise<URL | URLSearchParams | string>
}

/** Signing in from a program on somebody's machine: the system's browser, and a callback on this machine. */
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
  let loaded: Promise<ReturnType<typeof import('./loopback.ts').openLoopback>> | undefined
  const load = () => {
    loaded ??= import('./loopback.ts').then(({ openLoopback }) => openLoopback(options))
    return loaded
  }
  return {
    redirectUri: async () => (await load()).redirectUri(),
    authorize: async (url, given) => (await load()).authorize(url, given),
  }
}
