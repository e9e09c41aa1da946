/**
 * A client that asks its user before it calls. What the user said yes to is not asked a second time when the server asks in its
 * turn, as long as it asks the very same.
 */
import { problem } from '../../../core/problem.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { confirmationExtension, confirmationOf, confirmationText, type Risk, requiredIn, type WireConfirmed } from './messages.ts'

/** What the user is asked. */
export interface ConfirmQuestion {
  /** The full text: server, tool, and what the tool says of this call. */
  readonly message: string
  readonly risk: Risk
  readonly tool: string
  readonly arguments: Params
}

export type OnConfirm = (question: ConfirmQuestion, context: { readonly signal: AbortSignal | undefined }) => Awaitable<boolean>

interface FormQuestion {
  readonly mode: string
  readonly message: string
  readonly schema?: Params
}

type FormAnswer = { readonly action: 'accept'; readonly content: { readonly confirm: true } }

/** One call, as this side needs to know it. */
export interface ConfirmedCall<R> {
  readonly server: string
  readonly tool: string
  readonly arguments: Params
  /** The `_meta` of the tool, as it was listed. */
  readonly about: unknown
  readonly signal: AbortSignal | undefined
  /** The user has agreed to this call before: one question about it is answered by that. */
  readonly agreed: boolean
  /** Makes the call, with this beside what it carries anyway. */
  readonly send: (meta: Params | undefined) => Promise<R>
}

export interface ConfirmationClient {
  readonly side: Side
  /** Whether a server has such tools: then each must be known before it is called. */
  asks(server: Pick<Peer, 'revision' | 'capabilities'>): boolean
  /** Asks where the tool wants that, then calls. Refuses where nobody can be asked. */
  call<R extends { readonly isError: boolean; readonly meta: Params | undefined }>(call: ConfirmedCall<R>): Promise<R>
  /** The answer to a question that the user has answered already; undefined where it is another one. */
  answered(question: FormQuestion): FormAnswer | undefined
}

export interface ConfirmationClientOptions {
  readonly onConfirm: OnConfirm | undefined
  /** Whether the server can have the user asked. */
  readonly elicits: boolean
}

export function confirmationClient({ onConfirm, elicits }: ConfirmationClientOptions): ConfirmationClient {
  /** What the user said yes to and the server may still ask. */
  const agreed = new Set<{ readonly message: string }>()
  return {
    asks: server => declared(server, confirmationExtension) !== undefined,
    call: async call => {
      const about = confirmationOf(call.about)
      if (about === undefined && onConfirm === undefined) return call.send(undefined)
      if (about !== undefined && onConfirm === undefined && !elicits) throw unconfirmed(call.tool)
      const known = { tool: call.tool, arguments: call.arguments }
      let isAgreed = call.agreed
      const confirm = async (question: Pick<ConfirmQuestion, 'message' | 'risk'>): Promise<void> => {
        if (onConfirm === undefined) throw unconfirmed(call.tool)
        if (!isAgreed && (await onConfirm({ ...known, ...question }, { signal: call.signal })) !== true) throw refused(call.tool)
        isAgreed = false
      }
      let yes: { readonly message: string } | undefined
      if (about !== undefined && onConfirm !== undefined) {
        const message = confirmationText(call.server, call.tool, about.confirmation_message, call.arguments)
        await confirm({ message, risk: about.risk_level })
        yes = { message }
        agreed.add(yes)
      }
      try {
        const first = await call.send(undefined)
        const offer = first.isError && onConfirm !== undefined ? requiredIn(first.meta) : undefined
        if (offer === undefined) return first
        const { confirmation_message: text, confirmation_token: token, risk_level: risk } = offer
        const names = confirmationText(call.server, call.tool, '', {})
        // Whatever the server wants to be asked, the user learns whose tool it is about.
        const asked = text.startsWith(names) ? text : `${names}${text}`
        if (asked !== yes?.message) await confirm({ message: asked, risk })
        const confirmed: WireConfirmed = { confirmation_token: token, user_confirmed: true }
        return await call.send({ [confirmationExtension]: confirmed })
      } finally {
        if (yes !== undefined) agreed.delete(yes)
      }
    },
    answered: ({ mode, message, schema }) => {
      const yes = [...agreed].find(one => one.message === message)
      if (yes === undefined || mode !== 'form' || !isConfirmForm(schema)) return undefined
      // Good for one question. Of two calls that are alike it does not matter whose it was.
      agreed.delete(yes)
      return { action: 'accept', content: { confirm: true } }
    },
    side: {
      capabilities: revision => (onConfirm === undefined ? {} : declaration(revision, confirmationExtension)),
    },
  }
}

/** A form that asks for more than a yes was not answered by one. */
function isConfirmForm(schema: Params | undefined): boolean {
  const properties = schema?.['properties']
  return isRecord(properties) && Object.keys(properties).join() === 'confirm'
}

function unconfirmed(tool: string) {
  return problem('CONFIRMATION_REQUIRED', `${clip(tool)} runs only when the user has agreed, and nobody can be asked`, {
    suggestion: 'Give connect the option onConfirm, or onElicit',
    actor: 'operator',
  })
}

function refused(tool: string) {
  return problem('CONFIRMATION_DECLINED', `The user did not agree to this call of ${clip(tool)}: it was not made`)
}
