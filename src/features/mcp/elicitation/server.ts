/** The server's side of asking the user. */
import { type CompiledSchema, compileSchema, type InferOutput, type Schema } from '../../../core/schema/index.ts'
import type { QuestionSender } from '../../../engine/asking.ts'
import type { CallOptions } from '../../../engine/calls.ts'
import { type CallContext, exchangeOf, ignoreUnhandledRejection } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, isThenable } from '../../../jsonrpc/message.ts'
import { type TaskWish, tasksPort } from '../tasks/messages.ts'
import {
  type ElicitResult,
  elicit,
  elicitationComplete,
  elicitationErrors,
  formFits,
  isElicitResult,
  isYesNo,
  takesElicitation,
  yesNoForm,
} from './messages.ts'

/** A question that the user answers by a form. */
export interface FormQuestion<S extends Schema = Schema> extends CallOptions {
  /** The text that the user reads. */
  readonly message: string
  /**
   * The fields of the form: a flat object of strings, numbers, booleans and choices. Without it there is nothing to fill in, and
   * some clients accept such a form automatically: use `confirm` for a yes of the user.
   */
  readonly schema?: S
  /** Names the question, if a call asks several in an order that may change. Default: its number. */
  readonly key?: string
  /** Has the answer worked out as a task, if the client runs such tasks. Default: no. */
  readonly task?: TaskWish
}

/** A question that the user answers on a web page. */
export interface UrlQuestion extends CallOptions {
  /** Why the user should open the page. */
  readonly message: string
  /** The address of the page, which the client shows before it opens it. */
  readonly url: string
  /** Names the question, if a call asks several in an order that may change. Default: its number. */
  readonly key?: string
  /** Has the answer worked out as a task, if the client runs such tasks. Default: no. */
  readonly task?: TaskWish
}

/** The answer of the user. An accepted form has `content` of the schema's type. */
export type Elicited<T> =
  | {
      /** What the user did: sent the form, refused, or closed it without an answer. */
      readonly action: 'accept'
      /** The content of the form, validated against the schema. */
      readonly content: T
    }
  | {
      /** What the user did: sent the form, refused, or closed it without an answer. */
      readonly action: 'decline' | 'cancel'
    }

/** Questions to the user. */
export interface ElicitationContext {
  /**
   * Asks the user to fill in a form, or to visit a page, and waits for the answer. Throws if the client cannot ask its user.
   * @example
   * const answer = await ctx.elicit({ message: 'Which size?', schema: z.object({ size: z.number() }) })
   * return answer.action === 'accept' ? `Size ${answer.content.size}` : 'Nothing was ordered'
   */
  elicit<S extends Schema>(question: FormQuestion<S>): Promise<Elicited<InferOutput<S>>>
  /**
   * Asks the user to fill in a form, or to visit a page, and waits for the answer. Throws if the client cannot ask its user.
   * @example
   * const answer = await ctx.elicit({ message: 'Which size?', schema: z.object({ size: z.number() }) })
   * return answer.action === 'accept' ? `Size ${answer.content.size}` : 'Nothing was ordered'
   */
  elicit(question: UrlQuestion): Promise<{
    /** What the user did: agreed, refused, or closed the question. */
    readonly action: 'accept' | 'decline' | 'cancel'
    /** The id of the question, for `elicitationDone`. */
    readonly elicitationId: string
  }>
  /** Notifies the client that the page of a URL question has done its work. */
  elicitationDone(elicitationId: string): void
  /**
   * Asks the user for a yes, by a form with one box to tick. True only if the box was ticked. Throws if the client cannot ask its
   * user.
   * @example if (!(await ctx.confirm('Delete ticket T-1?'))) return 'It stays'
   */
  confirm(
    message: string,
    options?: CallOptions & {
      /** Names the question, if a call asks several in an order that may change. Default: its number. */
      key?: string
      /** Has the answer worked out as a task, if the client runs such tasks. Default: no. */
      task?: TaskWish
    },
  ): Promise<boolean>
}

/** Questions to the user: `ctx.elicit`, `ctx.confirm`. */
export const elicitationFeature = defineServerFeature<object>({
  name: 'elicitation',
  context: {
    elicit(question: FormQuestion | UrlQuestion): Promise<never> {
      const exchange = exchangeOf(this)
      const by = questionSender(exchange, question.task)
      const asked: Promise<unknown> = 'url' in question ? elicitUrl(exchange, question, by) : elicitForm(exchange, question, by)
      return ignoreUnhandledRejection(asked) as Promise<never>
    },
    elicitationDone(elicitationId) {
      exchangeOf(this).notify(elicitationComplete, { elicitationId })
    },
    confirm(message, options = {}) {
      const exchange = exchangeOf(this)
      return ignoreUnhandledRejection(elicitYes(exchange, { message, ...options }, questionSender(exchange, options.task)))
    },
  } satisfies ElicitationContext & ThisType<CallContext>,
  setup: () => ({ sides: [{ errors: elicitationErrors }] }),
})

function questionSender({ engine }: Exchange, wish: TaskWish | undefined): QuestionSender | undefined {
  return engine.ports.get(tasksPort).questionSender(wish)
}

const empty = { type: 'object', properties: {} } as const

/** Asks by a form and checks the answer by the question's schema. */
export async function elicitForm<S extends Schema>(
  exchange: Exchange,
  question: FormQuestion<S>,
  by?: QuestionSender,
): Promise<Elicited<InferOutput<S>>> {
  const { message, schema, key, task, ...options } = question
  const compiled = schema === undefined ? undefined : compileSchema(schema)
  const requestedSchema = compiled === undefined ? empty : flat(compiled.json)
  const allowed = takesElicitation(exchange.peer, 'form') && formFits(exchange.peer.revision, requestedSchema)
  const answer = await exchange.ask(
    elicit,
    { mode: 'form', message, requestedSchema },
    {
      ...options,
      kind: 'elicit',
      key,
      by,
      requires: { elicitation: {} },
      allowed,
      accepts: value => isElicitResult(value) && invalidAnswer(compiled, value) === undefined,
      fault: value => (isElicitResult(value) ? invalidAnswer(compiled, value) : undefined),
    },
  )
  if (answer.action !== 'accept') return { action: answer.action }
  const checked = await compiled?.validate(answer.content ?? {})
  if (checked?.ok === false)
    throw new McpError(
      'invalid-answer',
      `The client's answer to the form does not match its schema: ${issueText(checked.issues)}`,
    )
  return { action: 'accept', content: (checked?.value ?? {}) as InferOutput<S> }
}

/** Asks the user yes or no: only a ticked box is a yes, an accepted form alone is none. */
export async function elicitYes(
  exchange: Exchange,
  { message, key, task, ...options }: Omit<FormQuestion, 'schema'>,
  by?: QuestionSender,
): Promise<boolean> {
  const params = { mode: 'form' as const, message, requestedSchema: yesNoForm }
  const answer = await exchange.ask(elicit, params, {
    ...options,
    kind: 'elicit',
    key,
    by,
    requires: { elicitation: {} },
    allowed: takesElicitation(exchange.peer, 'form'),
    accepts: isYesNo,
    fault: value => (isElicitResult(value) ? 'confirm: it must be true or false' : undefined),
  })
  return answer.action === 'accept' && answer.content?.['confirm'] === true
}

async function elicitUrl(
  exchange: Exchange,
  question: UrlQuestion,
  by?: QuestionSender,
): Promise<{ readonly action: ElicitResult['action']; readonly elicitationId: string }> {
  const { message, url, key, task, ...options } = question
  const elicitationId = await exchange.once(`elicitation-id ${key ?? url}`, () => crypto.randomUUID())
  const answer = await exchange.ask(
    elicit,
    { mode: 'url', message, url, elicitationId },
    {
      ...options,
      kind: 'elicit',
      key,
      by,
      requires: { elicitation: { url: {} } },
      allowed: takesElicitation(exchange.peer, 'url'),
      accepts: isElicitResult,
    },
  )
  return { action: answer.action, elicitationId }
}

/** An asynchronous check can not be waited for here; it is made again before the handler sees the answer. */
function invalidAnswer(schema: CompiledSchema | undefined, { action, content }: ElicitResult): string | undefined {
  if (schema === undefined || action !== 'accept') return undefined
  const checked = schema.validate(content ?? {})
  return isThenable(checked) || checked.ok ? undefined : issueText(checked.issues)
}

/** Which field it is, and what is wrong with it. */
function issueText([first]: readonly { readonly path: string; readonly message: string }[]): string {
  const { path = '', message = 'it does not match' } = first ?? {}
  return path === '' ? clip(message, 200) : `${clip(path)}: ${clip(message, 200)}`
}

/** Forms are flat and carry no schema name: clients draw them, they do not resolve references. */
function flat(json: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { type, properties, required } = json
  if (type !== 'object' || !isRecord(properties)) throw new TypeError('The schema of a form must be an object with properties')
  for (const [name, field] of Object.entries(properties)) {
    if (isRecord(field) && (field['type'] === 'object' || field['$ref'] !== undefined)) {
      throw new TypeError(`The field "${name}" of the form is nested; forms can contain strings, numbers, booleans and choices`)
    }
  }
  return { type, properties, ...(required === undefined ? {} : { required }) }
}
