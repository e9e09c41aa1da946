/**
 * The client side of confirmation: asks the user before a call is sent. If the server then asks exactly the same question, the user's
 * answer is reused.
 */
import { problem } from '../../../core/problem.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type AskedForm, type ElicitResult, earlierAnswers } from '../../mcp/elicitation/messages.ts'
import {
  type CallTool,
  clientToolsPort,
  type ToolCallExtension,
  type ToolCallOptions,
  toolCalls,
} from '../../mcp/tools/messages.ts'
import { confirmationExtension, confirmationOf, confirmationText, type Risk, requiredIn } from './messages.ts'

/** What the user is asked. */
export interface ConfirmQuestion {
  /** The full text: server, tool, and the tool's message for this call. */
  readonly message: string
  /** The worst effect that the call can have. */
  readonly risk: Risk
  /** The name of the tool. */
  readonly tool: string
  /** The arguments of the call. */
  readonly arguments: Params
}

/** Asks the user; true means yes. */
export type OnConfirm = (
  question: ConfirmQuestion,
  context: {
    /** Aborted when the call is cancelled. */
    readonly signal: AbortSignal | undefined
  },
) => Awaitable<boolean>

/** Options of a call. */
export interface ConfirmationCallOptions {
  /** The user has already agreed to this exact call, so that `onConfirm` is not asked. Default false. */
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
    /** Confirmed questions that the server may still ask. */
    const agreed = new Set<AgreedQuestion>()
    const around: ToolCallExtension['around'] = next => {
      const asking: CallTool = async (tool, args = {}, options: ToolCallOptions & ConfirmationCallOptions, manner) => {
        const tools = kit.port(clientToolsPort)
        await tools.learn(tool, options.signal)
        const about = confirmationOf(tools.known(tool)?._meta)
        if (onConfirm === undefined) {
          // The server asks through `onElicit`.
          if (about !== undefined && onElicit === undefined) throw unconfirmed(tool)
          return next(tool, args, options, manner)
        }
        const server = kit.session.opened.serverInfo?.name ?? ''
        // Covers one question only.
        let isAgreed = options.confirmed === true
        const confirm = async (message: string, risk: Risk): Promise<void> => {
          const question = { message, risk, tool, arguments: args }
          if (!isAgreed && (await onConfirm(question, { signal: options.signal })) !== true) throw refused(tool)
          isAgreed = false
        }
        let yes: AgreedQuestion | undefined
        if (about !== undefined) {
          const message = confirmationText(server, tool, about.confirmation_message, args)
          await confirm(message, about.risk_level)
          yes = { message }
          agreed.add(yes)
        }
        try {
          const first = await next(tool, args, options, manner)
          const offer = first.isError ? requiredIn(first.meta) : undefined
          if (offer === undefined) return first
          const { confirmation_message: text, confirmation_token: token, risk_level: risk } = offer
          const names = confirmationText(server, tool, '', {})
          // The user always sees which server and tool the question is about.
          const asked = text.startsWith(names) ? text : `${names}${text}`
          if (asked !== yes?.message) await confirm(asked, risk)
          const confirmed = { [confirmationExtension]: { confirmation_token: token, user_confirmed: true } }
          return await next(tool, args, { ...options, meta: { ...options.meta, ...confirmed } }, manner)
        } finally {
          if (yes !== undefined) agreed.delete(yes)
        }
      }
      return (name, args, options, manner) => {
        // The definition is needed before the call if the tool, or its server, may want a confirmation.
        const mayAsk =
          kit.port(clientToolsPort).known(name)?._meta?.[confirmationExtension] !== undefined ||
          declaredSettings(kit.session.opened, confirmationExtension) !== undefined
        return manner?.resumed === true || !mayAsk ? next(name, args, options, manner) : asking(name, args, options, manner)
      }
    }
    const answered = ({ mode, message, schema }: AskedForm): ElicitResult | undefined => {
      const yes = [...agreed].find(one => one.message === message)
      if (yes === undefined || mode !== 'form' || !isConfirmForm(schema)) return undefined
      // Good for one question. If two identical calls are pending, either may use it.
      agreed.delete(yes)
      return { action: 'accept', content: { confirm: true } }
    }
    return {
      side: { capabilities: revision => (onConfirm === undefined ? {} : extensionCapability(revision, confirmationExtension)) },
      extensions: [
        extend(toolCalls, { name: 'confirmation', around }),
        ...(onConfirm === undefined ? [] : [extend(earlierAnswers, answered)]),
      ],
    }
  },
})

/** A question to which the user has said yes. */
interface AgreedQuestion {
  readonly message: string
}

/** A form with more than the one field is not covered by the user's yes. */
function isConfirmForm(schema: Params | undefined): boolean {
  const properties = schema?.['properties']
  return isRecord(properties) && Object.keys(properties).join() === 'confirm'
}

function unconfirmed(tool: string) {
  return problem(
    'CONFIRMATION_REQUIRED',
    `${clip(tool)} requires confirmation by the user, but this client cannot ask the user`,
    {
      suggestion: 'Pass the option onConfirm or onElicit to connect',
      actor: 'operator',
    },
  )
}

function refused(tool: string) {
  return problem('CONFIRMATION_DECLINED', `The user declined this call of ${clip(tool)}. It was not sent`)
}
