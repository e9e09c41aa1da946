/**
 * The client side of stdio: starts a command, exchanges frames over its standard input and output, and explains how it ended.
 * `command.ts` handles the process; this file makes a connection of it.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import { secretValues } from '../../core/redact.ts'
import { type Caller, type Connection, ConnectionError, type Outgoing, type Sink } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type CarrierLimits, clientCarrierLimits } from '../framing/limits.ts'
import { StreamConnection } from '../framing/stream.ts'
import { type CommandOptions, type ExitStatus, RunningCommand } from './command.ts'

/** Which command to start, and the limits of the connection to it. */
export interface StdioClientOptions extends CommandOptions {
  readonly limits?: Partial<CarrierLimits>
  readonly clock?: Clock
}

/**
 * Connects to a server that is a command. `start` starts the command, without a shell and with a small environment.
 * `close` closes its input, gives it time to end, then sends SIGTERM and at last SIGKILL to it and all that it started.
 * Nothing of it outlives this process, unless this process is killed by a signal.
 *
 * @example
 * const connection = stdioClientConnection({ command: 'node', args: ['server.js'] })
 * await connection.start({ frame: text => console.log(text), fault: console.error, closed: console.error })
 */
export function stdioClientConnection(options: StdioClientOptions): StdioClientConnection {
  return new StdioClientConnection(options)
}

/** How long to wait for output that the command wrote before it exited to be delivered. */
const heardMs = 2_000

/** A connection to a server that runs as a child process: whichever of process and streams ends first ends the other. */
export class StdioClientConnection implements Connection {
  readonly carrier = 'stdio'
  readonly caller: Caller = { carrier: 'stdio', connection: this }
  /** Resolves when the command has exited. */
  readonly exited: Promise<ExitStatus>
  readonly #options: StdioClientOptions
  readonly #resolveExited: (status: ExitStatus | Promise<ExitStatus>) => void
  #command: RunningCommand | undefined = undefined
  #stream: StreamConnection | undefined = undefined
  #sink: Sink | undefined = undefined
  /** The command has written something that looks like a JSON-RPC message. */
  #answered = false
  /** `close` was called, so the end is no failure. */
  #closing = false
  #ending: Promise<void> | undefined = undefined

  constructor(options: StdioClientOptions) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<ExitStatus>()
    this.exited = promise
    this.#resolveExited = resolve
  }

  /** The process id; undefined before `start`. */
  get pid(): number | undefined {
    return this.#command?.pid
  }

  /** The last lines that the command wrote to standard error. */
  get stderrTail(): readonly string[] {
    return this.#command?.stderr.tail ?? []
  }

  async start(sink: Sink): Promise<void> {
    if (this.#closing) throw closedHere()
    this.#sink = sink
    const command = this.#run(sink)
    this.#command = command
    this.#resolveExited(command.exited)
    this.#stream = streamOf(command, this.#options)
    this.#stream.start({
      frame: text => {
        // Log lines on standard output do not count as an answer.
        this.#answered ||= /^\s*[[{]/.test(text)
        sink.frame(text)
      },
      fault: fault => sink.fault(fault),
      closed: reason => void this.#end(reason),
    })
    // A grandchild may keep the output open for ever, so the exit of the process ends the connection too.
    command.exited.then(() => this.#end(undefined))
    try {
      await command.started
    } catch (error) {
      await this.#end(undefined)
      throw error
    }
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.#stream === undefined) return Promise.reject(notStarted())
    return this.#stream.send(frame, outgoing)
  }

  async close(): Promise<void> {
    this.#closing = true
    if (this.#stream === undefined) return this.#resolveExited({})
    await this.#stream.close()
    await this.#end(undefined)
  }

  /** Starts the command; a failure is reported to the sink as well. */
  #run(sink: Sink): RunningCommand {
    try {
      return new RunningCommand(this.#options, this.#options.clock ?? realClock)
    } catch (error) {
      this.#resolveExited({})
      if (error instanceof Error) sink.closed(error)
      throw error
    }
  }

  /** Ends the process and the connection, once. */
  #end(reason: Error | undefined): Promise<void> {
    this.#ending ??= this.#endCommand(reason, this.#closing)
    return this.#ending
  }

  async #endCommand(reason: Error | undefined, wanted: boolean): Promise<void> {
    await this.#command?.end(!this.#answered)
    // Frames that were already read may still wait for their turn of the event loop.
    const { clock = realClock, killMs = heardMs } = this.#options
    if (!wanted && this.#stream !== undefined) await settlesWithin(this.#stream.over, killMs, clock)
    await this.#stream?.close()
    this.#sink?.closed(wanted ? undefined : await this.#describe(reason))
  }

  /** Explains the end: the command could not start, or its exit status and last output. */
  async #describe(reason: Error | undefined): Promise<ConnectionError> {
    const command = this.#command
    try {
      await command?.started
    } catch (error) {
      if (error instanceof ConnectionError) return error
    }
    const { code, signal } = command?.status ?? {}
    const how =
      signal !== undefined ? `was ended by ${signal}` : code !== undefined ? `ended with exit code ${code}` : 'does not end'
    const when = this.#answered ? '' : ' before its first answer'
    const why = reason === undefined ? '' : `: ${reason.message}`
    const quote = command?.stderr.quote(secretValues(this.#options.env ?? {}, true)) ?? ''
    const words = quote === '' ? '' : `. On stderr it said: ${quote}`
    return new ConnectionError('lost', `The server ${clip(this.#options.command)} ${how}${when}${why}${words}`, { cause: reason })
  }
}

function streamOf(command: RunningCommand, { limits, closeMs, clock }: StdioClientOptions): StreamConnection {
  return new StreamConnection({
    carrier: 'stdio',
    input: command.output,
    output: command.input,
    limits: clientCarrierLimits(limits),
    serving: false,
    clock,
    lingerMs: closeMs,
    release() {
      command.input.end()
      // The remaining output is discarded, but an unread pipe would block the command.
      command.output.resume()
    },
  })
}

function closedHere(): ConnectionError {
  return new ConnectionError('aborted', 'The connection was closed before it was started. Create a new one')
}

function notStarted(): ConnectionError {
  return new ConnectionError('refused', 'The connection is not started yet. Call start first')
}
