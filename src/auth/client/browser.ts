/**
 * The step that needs a person: the authorization server is shown, and sends the person back with an answer. `cli()` uses the
 * system's browser.
 */
import type { Duration } from '../../core/clock.ts'

/** Shows the sign-in page to the user and returns the address to which the user comes back. Use `cli()`, or write your own. */
export interface Browser {
  /** The address to which the authorization server sends the user back. A function if it is known only once something listens. */
  readonly redirectUri: string | (() => Promise<string>)
  /** Shows the page (http or https). Resolves with the address, or its parameters, to which the user came back. */
  authorize(
    url: URL,
    options: {
      /** Aborted when the sign-in has taken too long or the client is closed. */
      readonly signal: AbortSignal
    },
  ): Promise<URL | URLSearchParams | string>
}

/** Options of `cli`: a sign-in with the browser of this machine, which comes back to a port of this machine. */
export interface CliOptions {
  /** The port of the callback. Set it if the client is registered with a fixed one. Default: any free port. */
  readonly port?: number
  /** The path of the callback. Default `/callback`. */
  readonly path?: string
  /** How long the user may take. Default 5 min. */
  readonly timeout?: Duration
  /** Opens the page. Default: the browser of the operating system. */
  readonly open?: (url: URL) => void | Promise<void>
  /** Called with the address of the page. Default: writes it to standard error, so that users can open it by hand. */
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
