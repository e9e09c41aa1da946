/**
 * The way back from the browser: a small server on 127.0.0.1 that lives only while somebody signs in. It takes each answer
 * once, and only one whose state it is waiting for; everything else is told so and changes nothing.
 */
import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toMilliseconds } from '../../core/clock.ts'
import { AuthorizationError } from '../addresses.ts'
import type { CliOptions } from './browser.ts'

interface Waiting {
  resolve(back: URLSearchParams): void
  reject(error: unknown): void
}

/** A browser for command lines: opens the system's browser and waits for the redirect on a loopback port. */
export function openLoopback(options: CliOptions): Loopback {
  return new Loopback(options)
}

class Loopback {
  readonly #options: CliOptions
  readonly #path: string
  readonly #limitMs: number
  readonly #waiting = new Map<string, Waiting>()
  #server: Promise<Server> | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(options: CliOptions) {
    this.#options = options
    this.#path = options.path ?? '/callback'
    this.#limitMs = toMilliseconds(options.timeout ?? '5m', 'timeout')
  }

  /** Listens, so that the address is known. */
  async redirectUri(): Promise<string> {
    const server = await this.#listen()
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}${this.#path}`
  }

  async authorize(url: URL, { signal }: { readonly signal: AbortSignal }): Promise<URLSearchParams> {
    const state = url.searchParams.get('state')
    if (state === null)
      throw new AuthorizationError(
        'browser',
        'The authorization URL has no state parameter, which is required to verify the answer',
      )
    await this.#listen()
    const late = AbortSignal.timeout(this.#limitMs)
    const stop = AbortSignal.any([signal, late])
    const back = new Promise<URLSearchParams>((resolve, reject) => {
      this.#waiting.set(state, { resolve, reject })
      stop.addEventListener('abort', () => reject(signal.aborted ? signal.reason : tooLate(this.#limitMs)), { once: true })
    })
    // Said before it is waited for: it may fail while the browser is still being started.
    back.catch(() => undefined)
    try {
      await this.#show(url)
      return await back
    } finally {
      this.#waiting.delete(state)
      if (this.#waiting.size === 0) this.#close()
    }
  }

  async #show(url: URL): Promise<void> {
    const { open, onUrl } = this.#options
    if (open !== undefined) return open(url)
    const say = onUrl ?? (address => process.stderr.write(`To sign in, open ${address.href}\n`))
    say(url)
    // Without a browser of its own a machine can still be signed in from: the address was said.
    await openBrowser(url).catch(() => undefined)
  }

  #listen(): Promise<Server> {
    clearTimeout(this.#idle)
    // Somebody may ask for the address and then never show it.
    this.#idle = setTimeout(() => this.#waiting.size === 0 && this.#close(), this.#limitMs).unref()
    this.#server ??= this.#start()
    return this.#server
  }

  #start(): Promise<Server> {
    const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 10_000 }, (request, response) =>
      this.#answer(request, response),
    )
    return new Promise((resolve, reject) => {
      server.once('error', error => {
        this.#server = undefined
        reject(new AuthorizationError('browser', `The callback cannot listen on 127.0.0.1: ${error.message}`))
      })
      server.listen(this.#options.port ?? 0, '127.0.0.1', () => resolve(server))
    })
  }

  #close(): void {
    const server = this.#server
    clearTimeout(this.#idle)
    this.#server = undefined
    void server?.then(open => {
      open.close()
      open.closeIdleConnections()
    })
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = URL.parse(request.url ?? '', 'http://127.0.0.1')
    if (request.method !== 'GET' || url === null || url.pathname !== this.#path) return page(response, 404, 'Not found.')
    const states = url.searchParams.getAll('state')
    const waiting = states.length === 1 ? this.#waiting.get(states[0] as string) : undefined
    if (waiting === undefined) {
      return page(response, 400, 'This sign-in link is not valid, or was already used. Please start again.')
    }
    this.#waiting.delete(states[0] as string)
    const said = url.searchParams.has('error') ? 'The sign-in was refused.' : 'You are signed in.'
    page(response, 200, `${said} You can close this window.`)
    waiting.resolve(url.searchParams)
  }
}

/** Plain words, nothing of the request in them. */
function page(response: ServerResponse, status: number, words: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  })
  const style = 'font:1.1rem system-ui;margin:20vh auto;max-width:30rem;text-align:center'
  response.end(`<!doctype html><meta charset="utf-8"><title>Sign-in</title><p style="${style}">${words}</p>\n`)
}

function tooLate(limitMs: number): AuthorizationError {
  return new AuthorizationError('browser', `Nobody signed in within ${limitMs} ms; try again, or raise the option timeout`)
}

// Hands an address to the system's browser: no shell, one argument, and only what is an http or https address.

/** Resolves when the browser was asked; whether it shows anything cannot be known. */
export function openBrowser(url: URL, platform: NodeJS.Platform = process.platform): Promise<void> {
  const [command, args] = commandFor(url, platform)
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'ignore', detached: true, shell: false })
    child.once('error', () => reject(new AuthorizationError('browser', `${command} could not start a browser`)))
    child.once('spawn', () => {
      child.unref()
      resolve()
    })
  })
}

/** The program and its arguments. The address is what parsing made of it, so it begins with its scheme and holds no blanks. */
export function commandFor(url: URL, platform: NodeJS.Platform): readonly [string, string[]] {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new AuthorizationError('address', 'Only http and https addresses are opened in a browser')
  }
  if (platform === 'darwin') return ['open', [url.href]]
  if (platform === 'win32') return ['rundll32', ['url.dll,FileProtocolHandler', url.href]]
  return ['xdg-open', [url.href]]
}
