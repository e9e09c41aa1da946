/** Starts the client under test: a command with the address of the server as its last words, or a function. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Carrier } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { promised } from '../wire/raw-peer.ts'
import type { Play } from './play.ts'
import type { ClientTarget, ScriptedServer } from './server.ts'

/** A client that is a program. */
export interface ClientCommand {
  /** A command line, split at spaces (quotes keep words together), or its words. */
  readonly command: string | readonly string[]
  /** The working directory. Default: that of this process. */
  readonly cwd?: string
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>
}

/** What a client is given in addition to the target. */
export interface Told {
  /** The name of the play. */
  readonly scenario: string
  /** The revision to speak. Undefined: the client finds out. */
  readonly version: string | undefined
  /** The carrier to connect by. */
  readonly carrier: Carrier
  /** What to do and to answer. */
  readonly context: Pick<Play, 'steps' | 'answers' | 'report'> & {
    /** The name of the scenario. */
    readonly name: string
    /** The client id, if the client signs in for itself. The official suite uses the same name. */
    readonly client_id?: string
    /** The secret of that client. */
    readonly client_secret?: string
  }
  /** Aborted when the time of the run is over. */
  readonly signal: AbortSignal
}

/** A client in this process. Resolves when it has done its steps. */
export type ClientFunction = (target: ClientTarget, told: Told) => Promise<void>
/** A client or host that can be judged. */
export type ClientUnderTest = ClientCommand | ClientFunction

/** How a client ended. */
export interface ClientEnd {
  /** Whether the client was stopped because its time was over. */
  readonly timedOut: boolean
  /** The exit code of a process. Undefined for functions, or if a signal ended it. */
  readonly code?: number | undefined
  /** The error of a function, or the last lines of a program's standard error. */
  readonly error?: string
}

/** Runs the client against one play, and ends it when its time is over. */
export async function drive(client: ClientUnderTest, server: ScriptedServer, signal: AbortSignal): Promise<ClientEnd> {
  const { play } = server
  const ms = play.ms ?? 30_000
  const over = AbortSignal.any([signal, AbortSignal.timeout(ms)])
  const { steps, answers, report, name } = play
  const told: Told = {
    scenario: name,
    carrier: server.carrier,
    version: play.free === true ? undefined : server.revision === 's3' ? 's3' : server.wire,
    context: {
      name,
      steps,
      ...(answers === undefined ? {} : { answers }),
      ...(report === undefined ? {} : { report }),
      ...(answers?.signIn?.way !== 'client-credentials'
        ? {}
        : { client_id: answers.signIn.clientId, client_secret: answers.signIn.clientSecret }),
    },
    signal: over,
  }
  return typeof client === 'function' ? driveFunction(client, server, told) : driveCommand(client, server, told)
}

async function driveFunction(client: ClientFunction, server: ScriptedServer, told: Told): Promise<ClientEnd> {
  const late = new Promise<ClientEnd>(resolve => {
    told.signal.addEventListener('abort', () => resolve({ timedOut: true }), { once: true })
  })
  const done = promised(() => client(server.target, told)).then(
    (): ClientEnd => ({ timedOut: false }),
    (error: unknown): ClientEnd => ({ timedOut: false, error: clip(error instanceof Error ? error.message : String(error)) }),
  )
  return Promise.race([done, late])
}

function driveCommand({ command, cwd, env }: ClientCommand, { target }: ScriptedServer, told: Told): Promise<ClientEnd> {
  const [program = '', ...args] = typeof command === 'string' ? words(command) : command
  const ends = typeof target === 'string' ? [target] : 'command' in target ? [target.command, ...target.args] : []
  const child = spawn(program, [...args, ...ends], {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, ...env, ...environment(told) },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: process.platform !== 'win32',
  })
  return new Promise(resolve => {
    let noise = ''
    let timedOut = false
    const stop = (): void => {
      timedOut = true
      endGroup(child)
      // What it has started elsewhere may hold its output for ever.
      setTimeout(() => child.stderr?.destroy(), 2_000).unref()
    }
    told.signal.addEventListener('abort', stop, { once: true })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (noise.length < 4_000) noise += text
    })
    child.on('error', error => resolve({ timedOut, error: `Cannot start "${clip(program)}": ${error.message}` }))
    child.once('close', code => {
      told.signal.removeEventListener('abort', stop)
      const error = code === 0 || noise.trim() === '' ? {} : { error: clip(noise.trim().split('\n').at(-1) ?? '') }
      resolve({ timedOut, code: code ?? undefined, ...error })
    })
  })
}

function environment({ scenario, version, context }: Told): Record<string, string> {
  return {
    VIVARIUM_SCENARIO: scenario,
    MCP_CONFORMANCE_SCENARIO: scenario,
    MCP_CONFORMANCE_CONTEXT: JSON.stringify(context),
    ...(version === undefined ? {} : { MCP_CONFORMANCE_PROTOCOL_VERSION: version }),
  }
}

/** What a client has started ends with it. */
function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? child.pid : -child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}

/** Words of a command line; quotes keep blanks. */
function words(line: string): string[] {
  return [...line.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double?.replace(/\\(.)/g, '$1') ?? single ?? bare ?? '',
  )
}
