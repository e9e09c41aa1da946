/**
 * A play: how the scripted server behaves, and what the client is asked to do meanwhile. A client that knows nothing of steps does
 * the plain run of the official suite (connect, list the tools, call `test-tool` with {}, close), and most plays ask no more.
 */
import type { Json, RevisionId } from '../scenario.ts'
import type { HttpHead, HttpResponse } from './log.ts'
import type { Handler, Refusal } from './script.ts'
import type { ScriptedServer } from './server.ts'

/** What a client is asked to do; `as` names it in the report. */
export type Step =
  | { readonly do: 'list'; readonly what: 'tools' | 'resources' | 'templates' | 'prompts'; readonly as?: string }
  | ({ readonly do: 'call'; readonly tool: string; readonly arguments?: Json; readonly as?: string } & CallWishes)
  | { readonly do: 'read'; readonly uri: string; readonly as?: string }
  | { readonly do: 'prompt'; readonly name: string; readonly arguments?: Readonly<Record<string, string>>; readonly as?: string }
  | { readonly do: 'complete'; readonly prompt: string; readonly argument: string; readonly value: string; readonly as?: string }
  | { readonly do: 'together'; readonly steps: readonly Step[] }
  /** Follows a list (or a resource), and reads it again after the first change that is announced. */
  | { readonly do: 'watch'; readonly what: 'tools' | 'prompts' | 'resources'; readonly as?: string }
  | { readonly do: 'watch-resource'; readonly uri: string; readonly as?: string }
  | { readonly do: 'roots'; readonly roots: readonly Root[]; readonly as?: string }
  | { readonly do: 'events'; readonly names: readonly string[]; readonly count: number; readonly as?: string }
  | { readonly do: 'manifest'; readonly as?: string }
  | { readonly do: 'recommend'; readonly capability: string; readonly as?: string }
  /** Reads what the reference in the result of a tool stands for. */
  | { readonly do: 'reference'; readonly tool: string; readonly as?: string }
  /** A transaction of these calls; it is committed, or rolled back where one fails. */
  | { readonly do: 'transaction'; readonly calls: readonly { tool: string; arguments?: Json }[]; readonly as?: string }
  // ── a host
  | { readonly do: 'say'; readonly text: string; readonly conversation?: string; readonly as?: string }
  | { readonly do: 'rollback'; readonly set: string; readonly checkpoint: string; readonly as?: string }
  | {
      readonly do: 'select'
      readonly enabled: readonly string[]
      readonly disabled: readonly string[]
      readonly scopes?: LiveWishes['scopes']
      readonly as?: string
    }
  /** Stays until the server says that it is done: it lists a tool of this name, and announces the change. */
  | { readonly do: 'stay'; readonly ms: number; readonly as?: string }

/** A folder that the client shows to servers. */
interface Root {
  readonly uri: string
  readonly name?: string
}

/** What a client is asked to do with a call, beside making it. */
export interface CallWishes {
  /** Wants to hear of progress. */
  readonly progress?: boolean
  /** Gives up after the first progress, or after so many milliseconds without. */
  readonly cancel?: number
  readonly task?: boolean
  /** How long the answer may take, in milliseconds. */
  readonly timeout?: number
  /** Hears the result while it forms. */
  readonly stream?: boolean
  readonly budget?: number
  readonly intent?: string
  readonly conversation?: string
}

/** What the client is to answer when it is asked. What is absent it has no answer for, and should not declare. */
export interface Answers {
  readonly elicit?: { readonly action: 'accept' | 'decline' | 'cancel'; readonly content?: Json }
  readonly sample?: string
  readonly sampleTools?: boolean
  readonly roots?: readonly Root[]
  /** What the user says to a call that needs a yes; absent: there is nobody to ask. */
  readonly confirm?: boolean
  /** What the user says to a cost nobody knows. */
  readonly cost?: boolean
  /** Whether a suggestion of the server is followed. */
  readonly suggestion?: boolean
  /** Whether the server may hear what calls are for. */
  readonly intent?: boolean
  /** Whether a missing right can be got. */
  readonly authorize?: boolean
  /** How often a failed call may be made again. */
  readonly retries?: number
  /** How it gets a token where the server wants one; absent: it has none. */
  readonly signIn?: SignInWay
  readonly live?: LiveWishes
}

/**
 * `code`: as for a user who signs in with a browser, but nobody has to look at the page: it answers with the redirect at once.
 * `client-credentials`: for itself, as this client.
 */
export type SignInWay =
  | { readonly way: 'code' }
  | { readonly way: 'client-credentials'; readonly clientId: string; readonly clientSecret: string }

/** What a host under test is configured with. */
export interface LiveWishes {
  readonly enabled: readonly string[]
  readonly disabled: readonly string[]
  readonly scopes?: Readonly<Record<string, { readonly whitelist?: readonly string[]; readonly blacklist?: readonly string[] }>>
  /** What the model of the host answers, turn by turn. */
  readonly model?: readonly (string | { readonly call: string; readonly arguments?: Json })[]
  /** What the user says when asked for more rights. */
  readonly approve?: boolean
  /** How many pushed events a minute the host takes. */
  readonly pushes?: number
}

/** How the scripted server answers a method: with this result, this error, or as a handler says; undefined: it does not have it. */
export type Served = Readonly<Record<string, Json | Refusal | Handler | undefined>>

/** One run of the client against one behaviour of the server. Scenarios that look at the same play share it. */
export interface Play {
  readonly name: string
  readonly steps: readonly Step[]
  readonly answers?: Answers
  /** The client says at the end what came of each step, by calling the tool `test-report`. */
  readonly report?: boolean
  /** The client is not told which version to speak. */
  readonly free?: boolean
  readonly capabilities?: Json | ((revision: RevisionId) => Json)
  /** Tools beside or instead of `test-tool`. */
  readonly tools?: readonly Json[]
  /** What is answered beside or instead of the opening and the tools. */
  readonly on?: Served | ((server: ScriptedServer) => Served)
  /** Sees HTTP requests first; true: answered. */
  readonly http?: (server: ScriptedServer) => (http: HttpHead, response: HttpResponse, body: string) => boolean
  /** What has to be there beside the server before the client comes; it is closed after the play. */
  readonly beside?: (server: ScriptedServer) => Promise<{ close(): Promise<void> }>
  /** Answers of HTTP come as streams. */
  readonly streams?: boolean
  /** A GET gets no stream. */
  readonly deaf?: boolean
  /** Where the old pair says that messages go. */
  readonly endpoint?: (server: ScriptedServer) => string
  /** Keeps machine and client busy: nothing else is run beside it. */
  readonly alone?: boolean
  /** How long the client has. Default 30 s. */
  readonly ms?: number
  /** How long the server waits for an answer of the client. Default 2 s. */
  readonly patienceMs?: number
}

/** A call of `test-tool`, reported under `as`. */
export function call(as: string, args: Json = {}, wishes: CallWishes = {}): Step {
  return { do: 'call', tool: 'test-tool', arguments: args, as, ...wishes }
}

/** The list of the tools. */
export const listTools: Step = { do: 'list', what: 'tools' }
/** The plain run of the official suite. */
export const plainSteps: readonly Step[] = [listTools, call('call')]
/** The plain run, and the same call once more. */
export const stepsAgain: readonly Step[] = [...plainSteps, call('again', { again: true })]

/** A play of the plain run, unless it says otherwise. */
export function play(name: string, more: Partial<Omit<Play, 'name'>> = {}): Play {
  return { name, steps: plainSteps, ...more }
}

/** The same for a client that says at the end what came of each step. */
export function reportedPlay(name: string, more: Partial<Omit<Play, 'name'>>): Play {
  return play(name, { report: true, ...more })
}

/** The tool that every run calls. */
export const testTool: Json = { name: 'test-tool', description: 'Called by every run', inputSchema: { type: 'object' } }

/** A result of `tools/call`. */
export function textResult(text: string, more: Json = {}): Json {
  return { content: [{ type: 'text', text }], ...more }
}
