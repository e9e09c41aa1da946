/** What the commands of a terminal work on. */
import type { Host } from '../../host/host.ts'
import type { HostConversation } from '../../host/loop/conversation.ts'
import type { Attachment } from '../../host/loop/user-input.ts'
import type { Questions } from './questions.ts'
import type { Screen } from './screen.ts'

export interface TerminalSession {
  readonly host: Host
  readonly conversation: HostConversation
  readonly screen: Screen
  readonly questions: Questions
  /** What goes beside the next message. */
  readonly attached: Attachment[]
  /** The last lines that servers wrote on standard error. */
  readonly stderr: ReadonlyMap<string, readonly string[]>
  readonly now: () => number
}

export interface TerminalCommand {
  readonly name: string
  /** Other names that people type for it. */
  readonly aliases?: readonly string[]
  /** What may stand behind it. */
  readonly takes?: string
  readonly about: string
  /** True: the terminal ends. */
  run(session: TerminalSession, rest: string): Promise<boolean | undefined>
}
