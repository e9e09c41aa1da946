/**
 * The client side of confirmation: asks the user before a call is sent. If the server then asks exactly the same question, the user's
 * answer is reused.
 */
import { problem } from '../../../core/problem.ts'
import { type ClientKit, defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { type AskedForm, type ElicitResult, earlierAnswers } from '../../mcp/elicitation/messages.ts'
import {
  type CallManner,
  type CallTool,
  clientToolsPort,
  type ToolAnswer,
  type ToolCallExtension,
  type ToolCallOptions,
  toolCalls,
} from '../../mcp/tools/messages.ts'
import { confirmationExtension, confirmationOf, confirmationText, type Risk, requiredIn, type WireConfirmed } from './messages.ts'

/** What the user is asked. */
export interface ConfirmQuestion {
  /** The full text: server, tool, and the tool's message for this call. */
  readonly message: string
  readonly risk: Risk
  readonly tool: string
  readonly arguments: Params
}

/** Asks the user; true means yes. */
export type OnConfirm = (question: ConfirmQuestion, context: { readonly signal: AbortSignal | undefined }) => Awaitable<boolean>

/** One call, as the confirmation needs it. */
interface ConfirmedCall<R> {
  readonly server: string
  readonly tool: string
  readonly arguments: Params
  /** The `_meta` of the listed tool. */
  readonly about: unknown
  readonly signal: AbortSignal | undefined
  /** The user has already agreed to this call; the first question is skipped. */
  readonly agreed: boolean
  /** Sends the call, with additional `_meta`. */
  readonly send: (meta: Params | undefined) => Promise<R>
}

interface Confirmation {
  /** Whether the server uses confirmations; then a tool's definition must be known before it is called. */
  asks(server: Pick<Peer, 'revision' | 'capabilities'>): boolean
  /** Asks if the tool requires it, then calls. Throws if nobody can be asked. */
  call<R extends { readonly isError: boolean; readonly meta: Params | undefined }>(call: ConfirmedCall<R>): Promise<R>
  /** Answers a question that the user has already answered; undefined for any other question. */
  answered(question: AskedForm): ElicitResult | undefined
}

/** Options of a call. */
export interface ConfirmationCallOptions {
  /** The user has agreed to this exact call: the first question to `onConfirm` is skipped. */
  readonly confirmed?: boolean
}

/** Options of `connect` for confirmation. */
export interface ConfirmationOptions {
  /**
   * Asked before a tool is called that needs confirmation; the call is sent only after a yes. Without it the server asks through
   * `onElicit`; without both the call is refused.
   */
  readonly onConfirm?: OnConfirm
}

/** The client feature: asks the user before tools that require it. */
export const confirmationClient = defineClientFeature<
  ConfirmationOptions,
  unknown,
  ConfirmationOptions & { readonly onElicit?: unknown }
>({
  name: 'confirmation',
  uses: [clientToolsPort],
  options: { onConfirm: 'function' },
  setup(kit, { onConfirm, onElicit }) {
    const confirmation = confirmationOn({ onConfirm, elicits: onElicit !== undefined })
    const around: ToolCallExtension['around'] = next => (name, args, options, manner) => {
      const tools = kit.port(clientToolsPort)
      // The definition is needed before the call.
      const mayAsk = tools.known(name)?._meta?.[confirmationExtension] !== undefined || confirmation.asks(kit.session.opened)
      if (manner?.resumed === true || !mayAsk) return next(name, args, options, manner)
      return ask(kit, confirmation, next, [name, args ?? {}, options, manner])
    }
    return {
      side: { capabilities: revision => (onConfirm === undefined ? {} : declaration(revision, confirmationExtension)) },
      extensions: [
        extend(toolCalls, { name: 'confirmation', around }),
        ...(onConfirm === undefined ? [] : [extend(earlierAnswers, question => confirmation.answered(question))]),
      ],
    }
  },
})

async function ask(
  { port, session }: ClientKit,
  confirmation: Confirmation,
  next: CallTool,
  [name, args, options, manner]: [string, Params, ToolCallOptions & ConfirmationCallOptions, CallManner | undefined],
): Promise<ToolAnswer> {
  const tools = port(clientToolsPort)
  await tools.learn(name, options.signal)
  return confirmation.call({
    server: session.opened.serverInfo?.name ?? '',
    tool: name,
    arguments: args,
    about: tools.known(name)?._meta,
    signal: options.signal,
    agreed: options.confirmed === true,
    send: meta => next(name, args, meta === undefined ? options : { ...options, meta: { ...options.meta, ...meta } }, manner),
  })
}

interface ConsentSources {
  readonly onConfirm: OnConfirm | undefined
  /** Whether the server can ask the user by elicitation. */
  readonly elicits: boolean
}

/** The confirmation logic of one connection. */
function confirmationOn({ onConfirm, elicits }: ConsentSources): Confirmation {
  /** Confirmed questions that the server may still ask. */
  const agreed = new Set<{ readonly message: string }>()
  return {
    asks: server => declared(server, confirmationExtension) !== undefined,
    call: async call => {
      const about = confirmationOf(call.about)
      if (about === undefined && onConfirm === undefined) return call.send(undefined)
      if (about !== undefined && onConfirm === undefined && !elicits) throw unconfirmed(call.tool)
      const known = { tool: call.tool, arguments: call.arguments }
      // Covers one question only.
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
        // The user always sees which server and tool the question is about.
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
      // Good for one question. If two identical calls are pending, either may use it.
      agreed.delete(yes)
      return { action: 'accept', content: { confirm: true } }
    },
  }
}

/** A form with more than the one field is not covered by the user's yes. */
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
