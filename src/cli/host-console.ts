/** The web console of `vivarium up`: one queue of questions for page and terminal, and a page beside the terminal or alone. */
import { askBoth } from '../console/beside.ts'
import { type ApprovalQueue, createApprovalQueue, observeHost, type RunningConsole, serveConsole } from '../console/index.ts'
import type { Host, HostOptions } from '../host/host.ts'
import { linkNotes, openLink, userName } from './console-link.ts'
import type { Io } from './io.ts'
import type { Confirm } from './terminal/questions.ts'

/** Who answers in the terminal. Each is absent where nobody sits before it. */
type TerminalAnswers = Pick<HostOptions, 'onApproval' | 'onElicit' | 'onSampleReview'>

/** Options of a host that tells of failures. */
type GivenOptions = HostOptions & Required<Pick<HostOptions, 'onTrouble'>>

/** How the console is opened. */
interface HostConsoleOptions {
  readonly io: Pick<Io, 'env' | 'interactive'>
  /** What the page shows as the name of the host. */
  readonly name: string
  readonly conversation: string
  readonly examples: readonly string[]
  /** Whether the browser may be opened. */
  readonly opens: boolean
  /** Told what goes wrong in the console. */
  readonly failed: (error: unknown) => void
}

/** A console that is prepared before its host, so that it knows it from the start on. */
export class HostConsole {
  readonly #options: HostConsoleOptions
  readonly #queue: ApprovalQueue = createApprovalQueue()
  readonly #user = userName()
  #observer: ReturnType<typeof observeHost>['observer'] | undefined
  #running: RunningConsole | undefined

  constructor(options: HostConsoleOptions) {
    this.#options = options
  }

  /** The options of a host whose questions page and terminal answer. */
  observe(given: GivenOptions, terminal: TerminalAnswers = {}): GivenOptions {
    const { onApproval, onElicit, onSampleReview } = terminal
    const answers = this.#queue.beside({
      by: `${this.#user} (terminal)`,
      ...(onApproval && { onApproval }),
      ...(onElicit && { onElicit }),
      ...(onSampleReview && { onSampleReview }),
    })
    const { options, observer } = observeHost({ ...given, ...answers })
    this.#observer = observer
    // The observer has put its own before it.
    return { ...options, onTrouble: options.onTrouble ?? given.onTrouble }
  }

  /** Asks about a changed config file, in the page and in the terminal. */
  confirm(terminal: Confirm | undefined): Confirm {
    return async (text, lines) => {
      const posed = await this.#queue.pose({ kind: 'config', server: '', text, rule: 'config.trust', payload: lines })
      if (terminal === undefined) return (await posed.answered).yes
      return askBoth<boolean | undefined>(posed, {
        by: `${this.#user} (terminal)`,
        signal: undefined,
        here: signal => terminal(text, lines, signal),
        isYes: yes => yes === true,
        read: ({ yes }) => yes,
      })
    }
  }

  /** Serves the page, and opens the browser where that makes sense. */
  async open(host: Host): Promise<void> {
    const { io, name, conversation, examples, opens, failed } = this.#options
    this.#running = await serveConsole({
      ...{ host, approvals: this.#queue, name, by: this.#user, onError: failed },
      ...(this.#observer !== undefined && { observer: this.#observer }),
      chat: { conversation, examples },
    })
    if (opens) await openLink(this.#running, io)
  }

  /** What the terminal says of it. */
  get page(): { readonly lines: readonly string[]; newLink(): string } | undefined {
    const running = this.#running
    if (running === undefined) return undefined
    const notes = linkNotes(running, undefined, this.#options.io).map(note => `  ${note}`)
    return { lines: [`console  ${running.link}  (once, 10 min)`, ...notes], newLink: () => running.newLink() }
  }

  /** Withdraws what waits for the page, so that no turn waits for it, and stops to listen. */
  async close(): Promise<void> {
    this.#queue.close()
    await this.#running?.close()
  }
}
