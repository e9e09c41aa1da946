/** The server's side of asking the user. */
import { type Compiled, compileSchema, type InferOutput, type Schema } from '../../../core/schema/index.ts'
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

/** A question that the user answers in a form. */
export interface FormQuestion<S extends Schema = Schema> extends CallOptions {
  /** What the user is told. */
  readonly message: string
  /**
   * A flat object: strings, numbers, booleans and choices. Without it there is nothing to fill in, and some clients accept such a
   * form by themselves: a yes of the user is what `confirm` asks for.
   */
  readonly schema?: S
  /** Names the question across re-entry. */
  readonly key?: string
  /** Have the answer worked out as a task, where the client runs such tasks. */
  readonly task?: TaskWish
}

/** A question that the user answers on a web page. */
export interface UrlQuestion extends CallOptions {
  /** Why the user should open the page. */
  readonly message: string
  /** The page, which the client shows before it opens it. */
  readonly url: string
  /** Tells questions of one call apart where it runs again with their answers. */
  readonly key?: string
  /** Have the answer worked out as a task, where the client runs such tasks. */
  readonly task?: TaskWish
}

/** The user's answer, with content of the schema's type where a form was accepted. */
export type Elicited<T> = { readonly action: 'accept'; readonly content: T } | { readonly action: 'decline' | 'cancel' }

/** What elicitation adds to the context of a call. */
export interface ElicitationContext {
  /** Asks the user to fill in a form, or to visit a page. */
  elicit<S extends Schema>(question: FormQuestion<S>): Promise<Elicited<InferOutput<S>>>
  /** Asks the user and waits for the answer. */
  elicit(question: UrlQuestion): Promise<{ readonly action: 'accept' | 'decline' | 'cancel'; readonly elicitationId: string }>
  /** Tells the client that the page of a URL question has done its work. */
  elicitationDone(elicitationId: string): void
  /** Asks the user yes or no, by a form with one required box: only a ticked box is a yes. */
  confirm(message: string, options?: CallOptions & { key?: string; task?: TaskWish }): Promise<boolean>
}

/** Questions to the user: `ctx.elicit`, `ctx.confirm`. */
export const elicitationFeature = defineServerFeature<object>({
  name: 'elicitation',
  context: {
    elicit(question: FormQuestion | UrlQuestion): Promise<never> {
      const exchange = exchangeOf(this)
      const by = courier(exchange, question.task)
      const asked: Promise<unknown> = 'url' in question ? elicitUrl(exchange, question, by) : elicitForm(exchange, question, by)
      return ignoreUnhandledRejection(asked) as Promise<never>
    },
    elicitationDone(elicitationId) {
      exchangeOf(this).notify(elicitationComplete, { elicitationId })
    },
    confirm(message, options = {}) {
      const exchange = exchangeOf(this)
      return ignoreUnhandledRejection(elicitYes(exchange, { message, ...options }, courier(exchange, options.task)))
    },
  } satisfies ElicitationContext & ThisType<CallContext>,
  setup: () => ({ sides: [{ errors: elicitationErrors }] }),
})

function courier({ engine }: Exchange, wish: TaskWish | undefined): QuestionSender | undefined {
  return engine.ports.get(tasksPort).courier(wish)
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
      accepts: value => isElicitResult(value) && misfit(compiled, value) === undefined,
      fault: value => (isElicitResult(value) ? misfit(compiled, value) : undefined),
    },
  )
  if (answer.action !== 'accept') return { action: answer.action }
  const checked = await compiled?.validate(answer.content ?? {})
  if (checked?.ok === false)
    throw new McpError('invalid-answer', `The client's answer to the form does not fit its schema: ${issueText(checked.issues)}`)
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
function misfit(schema: Compiled | undefined, { action, content }: ElicitResult): string | undefined {
  if (schema === undefined || action !== 'accept') return undefined
  const checked = schema.validate(content ?? {})
  return isThenable(checked) || checked.ok ? undefined : issueText(checked.issues)
}

/** Which field it is, and what is wrong with it. */
function issueText([first]: readonly { readonly path: string; readonly message: string }[]): string {
  const { path = '', message = 'it does not fit' } = first ?? {}
  return path === '' ? clip(message, 200) : `${clip(path)}: ${clip(message, 200)}`
}

/** Forms are flat and carry no schema name: clients draw them, they do not resolve references. */
function flat(json: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { type, properties, required } = json
  if (type !== 'object' || !isRecord(properties)) throw new TypeError('The schema of a form must be an object with properties')
  for (const [name, field] of Object.entries(properties)) {
    if (isRecord(field) && (field['type'] === 'object' || field['$ref'] !== undefined)) {
      throw new TypeError(`The field "${name}" of the form is nested; forms hold strings, numbers, booleans and choices`)
    }
  }
  return { type, properties, ...(required === undefined ? {} : { required }) }
}
