/**
 * A host in the terminal. It knows its host only by what `createHost` gives, and hands in who answers questions; so whatever starts
 * a host can be talked to this way.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { nearest } from '../../core/suggestion.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import { faultText } from '../../host/config/read.ts'
import type { Host, HostOptions } from '../../host/host.ts'
import type { HostConversation } from '../../host/loop/conversation.ts'
import type { Turn } from '../../host/loop/turn.ts'
import type { Attachment } from '../../host/loop/user-input.ts'
import type { HostServer } from '../../host/servers/server.ts'
import type { Noted } from '../../policy/audit/host-audit.ts'
import { messageOf } from '../../stores/store.ts'
import { commands } from './commands/index.ts'
import { allResources } from './commands/servers.ts'
import { type Confirm, Questions } from './questions.ts'
import { createInterrupts, LineReader } from './reader.ts'
import { type Output, Screen } from './screen.ts'
import { showTurn, welcome } from './show-turn.ts'
import { brief, say } from './text.ts'
import { showWhy } from './words.ts'

/** What the terminal does for its host. */
type TerminalSide = HostOptions &
  Required<Pick<HostOptions, 'onTrouble'>> & {
    /** For whoever makes the host. */
    readonly confirm: Confirm
  }

/** What a terminal is made of. */
interface TerminalOptions {
  /** Makes the host; what it is given belongs into its options. */
  readonly open: (side: TerminalSide) => Promise<Host>
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean | undefined }
  readonly output: Output
  /** Who answers, and where everything is kept: for the first lines. */
  readonly model: ModelInfo
  /** The store, as it is shown. */
  readonly place: string
  /** Lines worth trying. */
  readonly examples?: readonly string[]
  /** Which conversation is shown, and events become turns of. Default `main`. */
  readonly conversation?: string
  /** Whether somebody can be asked. Default: where input and output are terminals. */
  readonly interactive?: boolean
  /** Where SIGINT and SIGTERM come from. Default nowhere. */
  readonly signals?: Pick<NodeJS.EventEmitter, 'on' | 'off'>
  /** The web console of the host, once it is there. */
  readonly page?: () => ConsolePage | undefined
  /** For NO_COLOR and TERM. Default empty. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly clock?: Clock
}

/** A web console as the terminal knows it. */
interface ConsolePage {
  /** What is said of it at the start. */
  readonly lines: readonly string[]
  /** Makes a link that works once. */
  newLink(): string
}

/** Lines of standard error that are kept of each server. */
const tailLines = 10
/** How long a turn may go on when there is nothing more to read. */
const lingerMs = 30_000
/** Refusals by the same rule that are not shown again. */
const quietMs = 10_000
/** Rules whose last refusal is remembered. */
const rememberedRules = 100

/** Runs until the input ends, `/quit`, or Ctrl-C twice. */
export async function runTerminal(options: TerminalOptions): Promise<void> {
  const terminal = new Terminal(options)
  await terminal.run()
}

/** A host in the terminal, from its start to its end. */
class Terminal {
  readonly #options: TerminalOptions
  readonly #clock: Clock
  readonly #screen: Screen
  readonly #reader: LineReader
  readonly #stderr = new Map<string, string[]>()
  readonly #up = new Map<string, boolean>()
  /** When a refusal was last shown, by server and rule. */
  readonly #shownAt = new Map<string, number>()
  /** What goes beside the next message. */
  readonly #attached: TerminalSession['attached'] = []
  readonly #ended = Promise.withResolvers<undefined>()
  /** Undefined until the host is there. */
  #session: TerminalSession | undefined = undefined
  /** Lines that were typed here, and whose turns have not begun. */
  readonly #typed: string[] = []
  /** Turns are shown one after the other, in the order in which they began. */
  #showing: Promise<void> = Promise.resolve()
  /** The one that is shown now, which Ctrl-C stops. */
  #turn: Turn | undefined = undefined

  constructor(options: TerminalOptions) {
    const { input, output, env = {}, clock = realClock } = options
    const interactive = options.interactive ?? (input.isTTY === true && output.isTTY === true)
    this.#options = options
    this.#clock = clock
    this.#screen = new Screen({ output, env, clock })
    this.#reader = new LineReader({
      input,
      output,
      screen: this.#screen,
      interactive,
      prompt: '› ',
      interrupted: () => this.#interrupts.interrupt(),
      complete: async line => (this.#session === undefined ? [] : completions(this.#session, line)),
    })
  }

  readonly #interrupts = createInterrupts({
    now: () => this.#clock.now(),
    refuse: () => this.#reader.refuse(),
    cancel: () => this.#cancel(),
    clear: () => this.#clear(),
    tell: () => this.#screen.line(say` ${this.#screen.paint.dim('Press Ctrl-C again, Ctrl-D or type /quit to end')}`),
    end: () => this.#ended.resolve(undefined),
  })

  async run(): Promise<void> {
    const { signals } = this.#options
    const interrupt = (): void => this.#interrupts.interrupt()
    const end = (): void => this.#ended.resolve(undefined)
    signals?.on('SIGINT', interrupt)
    signals?.on('SIGTERM', end)
    try {
      await this.#whole()
    } finally {
      signals?.off('SIGINT', interrupt)
      signals?.off('SIGTERM', end)
      this.#reader.close()
    }
  }

  /** Opens the host, converses, and closes it whatever happens. */
  async #whole(): Promise<void> {
    const questions = new Questions(this.#screen, this.#reader)
    const stop = this.#screen.work('starting servers')
    const host = await this.#options.open(this.#side(questions)).finally(stop)
    try {
      const conversation = host.conversation(this.#options.conversation ?? 'main')
      const session = {
        host,
        conversation,
        screen: this.#screen,
        questions,
        attached: this.#attached,
        stderr: this.#stderr,
        now: () => this.#clock.now(),
        page: this.#options.page?.(),
      }
      const { model, place, examples = [] } = this.#options
      await welcome(session, { model, place, examples })
      for (const line of session.page?.lines ?? []) this.#screen.line(say` ${line}`)
      this.#session = session
      await conversation.resume()
      await host.open()
      await Promise.race([this.#converse(session), this.#ended.promise])
    } finally {
      // First: a question that nobody answers any more would hold the turn that asks it.
      this.#reader.close()
      const closing = this.#screen.work('ending servers')
      await host.close().finally(closing)
    }
  }

  /** What the host is given: who answers, and who is told. */
  #side({ confirm, onApproval, onElicit, onSampleReview }: Questions): TerminalSide {
    return {
      confirm,
      onApproval,
      onElicit,
      onSampleReview,
      onTurn: (turn, { resumed }) => this.#show(turn, resumed),
      onServer: server => this.#server(server),
      onConfigFault: fault => this.#screen.line(say` ${this.#screen.paint.bad('!')} ${faultText(fault)}`),
      onStderr: (server, line) => this.#heard(server, line),
      onTrouble: why => showWhy(this.#screen, why),
      onNote: noted => this.#noted(noted),
      onBudget: why => showWhy(this.#screen, why),
      conversationOf: () => this.#options.conversation ?? 'main',
    }
  }

  /** Takes line after line until the input ends or a command does. */
  async #converse(session: TerminalSession): Promise<void> {
    for (;;) {
      const line = await this.#reader.next()
      if (line === undefined) break
      this.#interrupts.reset()
      if (await this.#took(session, line.trim())) return
    }
    // What an event has begun is shown to its end, unless that takes too long: then the next start goes on with it.
    const late = Promise.withResolvers<undefined>()
    const cancel = this.#clock.setTimeout(() => late.resolve(undefined), lingerMs, true)
    await Promise.race([this.#showing, late.promise])
    cancel()
  }

  /** True: the terminal ends. */
  async #took(session: TerminalSession, line: string): Promise<boolean> {
    if (line === '') return false
    const [, name = '', rest = ''] = /^\/(\S+)\s*(.*)$/.exec(line) ?? []
    try {
      const command = commands.find(each => each.name === name || each.aliases?.includes(name))
      if (command !== undefined) {
        await command.run(session, rest.trim())
        return command.ends === true
      }
      if (name !== '' && (await this.#misspelt(session, name))) return false
      const attach = this.#attached.splice(0)
      this.#typed.push(line)
      const turn = await session.conversation.send(line, { attach }).finally(() => this.#forget(line))
      await turn.done.catch(() => undefined)
      await this.#showing
    } catch (error) {
      this.#failed(error)
    }
    return false
  }

  /** Its turn has begun, or there is none. */
  #forget(line: string): void {
    const at = this.#typed.indexOf(line)
    if (at !== -1) this.#typed.splice(at, 1)
  }

  /** True: it is neither a command nor a prompt, and what may have been meant is said. */
  async #misspelt({ host, screen }: TerminalSession, name: string): Promise<boolean> {
    if (name.startsWith('/')) return false
    const prompts = (await host.prompts()).flatMap(({ command, server, prompt }) => [command, `${server}:${prompt.name}`])
    const meant = prompts.includes(name) ? [] : nearest(name, [...commands.map(each => each.name), ...prompts])
    if (meant.length === 0) return false
    const { paint } = screen
    screen.line(say` ${paint.bad('✗')} There is no command or prompt /${brief(name)}`)
    const all = meant.map(each => `/${each}`).join(' or ')
    screen.line(say`  ${paint.dim('→')} Did you mean ${all}? /help lists the commands; start with // to send a slash`)
    return true
  }

  /** Events that do not become turns, or not now. Of many that one rule refuses the first is shown; /inbox has them all. */
  #noted({ at, server, featureSet, eventId, kind, outcome, detail, why }: Noted): void {
    if (this.#session !== undefined && kind === 'config' && outcome === 'success')
      this.#screen.line(say` ${this.#screen.paint.good('●')} config ${this.#screen.paint.dim(detail ?? '')}`)
    if (this.#session === undefined || (kind !== 'push' && kind !== 'inbox') || (outcome !== 'refused' && outcome !== 'held'))
      return
    const rule = `${server} ${outcome} ${why?.rule ?? ''}`
    if (at - (this.#shownAt.get(rule) ?? Number.NEGATIVE_INFINITY) < quietMs) return
    if (this.#shownAt.size >= rememberedRules) this.#shownAt.clear()
    this.#shownAt.set(rule, at)
    const { paint } = this.#screen
    const what = `event ${brief(eventId ?? detail ?? '', 60)} of ${featureSet ?? server}`
    const mark = outcome === 'held' ? paint.warn('◇') : paint.bad('✗')
    this.#screen.line(say` ${mark} ${what} ${outcome === 'held' ? 'waits' : 'was refused'} ${paint.dim('(/inbox)')}`)
    showWhy(this.#screen, why)
  }

  /** Shows a turn once those before it are over. */
  #show(turn: Turn, resumed: boolean): void {
    // Turns of other conversations are begun in the web console, and shown there.
    if (turn.conversation !== (this.#options.conversation ?? 'main')) return
    const isTyped = this.#typed.includes(turn.text ?? '')
    if (isTyped) this.#forget(turn.text ?? '')
    this.#showing = this.#showing.then(async () => {
      const inbox = this.#session?.host.inbox
      if (inbox === undefined) return
      if (!isTyped && !resumed && turn.text !== null)
        this.#screen.line(say` ${this.#screen.paint.dim('in the console ›')} ${brief(turn.text, 400)}`)
      this.#turn = turn
      this.#reader.busy = true
      await showTurn(this.#screen, inbox, turn, { resumed, now: () => this.#clock.now() }).catch(error => this.#failed(error))
      this.#turn = undefined
      this.#reader.busy = false
    })
  }

  /** Stops the turn. False: there is none. */
  #cancel(): boolean {
    const turn = this.#turn
    if (turn === undefined) return false
    this.#screen.line(say` ${this.#screen.paint.warn('stopping')} ${this.#screen.paint.dim('(Ctrl-C again ends)')}`)
    turn.cancel('You stopped it')
    return true
  }

  /** Forgets what is half typed. False: nothing is. */
  #clear(): boolean {
    const typed = this.#reader.halfTyped
    if (typed) this.#reader.clear()
    return typed
  }

  /** Tells when a server comes up or goes down; at the start only what is wrong. */
  #server({ name, status, why }: HostServer): void {
    const up = status === 'up'
    const before = this.#up.get(name)
    if (status === 'connecting' || before === up) return
    this.#up.set(name, up)
    if (this.#session === undefined) return
    const { paint } = this.#screen
    this.#screen.line(say` ${up ? paint.good('●') : paint.bad('✗')} ${paint.name(name)} is ${up ? 'up' : status}`)
    if (!up) showWhy(this.#screen, why)
  }

  /** Keeps the last lines of standard error of a server. */
  #heard(server: string, line: string): void {
    const stored = this.#stderr.get(server) ?? []
    stored.push(brief(line, 300))
    stored.splice(0, Math.max(0, stored.length - tailLines))
    this.#stderr.set(server, stored)
  }

  /** Tells what failed and, where it is known, what helps. */
  #failed(error: unknown): void {
    const { paint } = this.#screen
    const fix =
      error instanceof Error && 'suggestion' in error && typeof error.suggestion === 'string' ? error.suggestion : undefined
    this.#screen.line(say` ${paint.bad('✗')} ${messageOf(error)}`)
    if (fix !== undefined) this.#screen.line(say`  ${paint.dim('→')} ${fix}`)
  }
}

/** What Tab proposes: our own commands, prompts of servers with their arguments, and resources behind `/attach`. */
async function completions(session: TerminalSession, line: string): Promise<readonly string[]> {
  if (!line.startsWith('/') || line.startsWith('//')) return []
  const [, name = '', rest] = /^\/(\S*)(?:\s+(.*))?$/.exec(line) ?? []
  if (rest === undefined) {
    const own = commands.filter(each => each.name.startsWith(name)).map(each => `/${each.name}`)
    return [...new Set([...own, ...(await session.conversation.complete(line))])]
  }
  if (name === 'attach') {
    const found = await allResources(session, '')
    return found.filter(({ uri, template }) => !template && uri.startsWith(rest)).map(({ uri }) => `/attach ${uri}`)
  }
  if (name === 'servers')
    return session.host.servers.filter(each => each.name.startsWith(rest)).map(each => `/servers ${each.name}`)
  return commands.some(each => each.name === name) ? [] : session.conversation.complete(line)
}

// What the commands of a terminal work on.

/** What the commands of a terminal work on. */
export interface TerminalSession {
  readonly host: Host
  readonly conversation: HostConversation
  readonly screen: Screen
  /** What was refused, and how to allow it later. */
  readonly questions: Questions
  /** What goes beside the next message. */
  readonly attached: Attachment[]
  /** The last lines that servers wrote on standard error. */
  readonly stderr: ReadonlyMap<string, readonly string[]>
  /** The time, in milliseconds since the epoch. */
  readonly now: () => number
  /** The web console of the host, where it has one. */
  readonly page?: ConsolePage | undefined
}

/** A command that begins with a slash. */
export interface TerminalCommand {
  readonly name: string
  /** Other names that people type for it. */
  readonly aliases?: readonly string[]
  /** What may stand behind it. */
  readonly takes?: string
  /** Its line in `/help`. */
  readonly about: string
  /** The terminal ends after it. */
  readonly ends?: true
  /** `rest` is what stands behind its name. */
  run(session: TerminalSession, rest: string): Promise<void>
}
