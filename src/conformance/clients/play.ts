/**
 * A play: how the scripted server behaves, and what the client is asked to do meanwhile. A client that knows nothing of steps does
 * the plain run of the official suite (connect, list the tools, call `test-tool` with {}, close), and most plays ask no more.
 */
import type { Json, RevisionId } from '../scenario.ts'
import type { HttpHead, HttpResponse } from './log.ts'
import type { Handler, Refusal } from './script.ts'
import type { ScriptedServer } from './server.ts'

/** A step that a client performs; `as` names it in the report. */
export type Step =
  | {
      /** The kind of the step. */
      readonly do: 'list'
      /** The list that the client works with. */
      readonly what: 'tools' | 'resources' | 'templates' | 'prompts'
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | ({
      /** The kind of the step. */
      readonly do: 'call'
      /** The tool to call. */
      readonly tool: string
      /** The arguments to send. Default: none. */
      readonly arguments?: Json
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    } & CallWishes)
  | {
      /** The kind of the step. */
      readonly do: 'read'
      /** The URI of the resource. */
      readonly uri: string
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'prompt'
      /** The name of the prompt. */
      readonly name: string
      /** The arguments to send. Default: none. */
      readonly arguments?: Readonly<Record<string, string>>
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'complete'
      /** The prompt whose argument is completed. */
      readonly prompt: string
      /** The name of the argument. */
      readonly argument: string
      /** What the user has typed so far. */
      readonly value: string
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'together'
      /** Steps that run at the same time. */
      readonly steps: readonly Step[]
    }
  /** Follows a list (or a resource), and reads it again after the first change that is announced. */
  | {
      /** The kind of the step. */
      readonly do: 'watch'
      /** The list that the client works with. */
      readonly what: 'tools' | 'prompts' | 'resources'
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'watch-resource'
      /** The URI of the resource. */
      readonly uri: string
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'roots'
      /** The roots to announce instead of the earlier ones. */
      readonly roots: readonly Root[]
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'events'
      /** The names of the events to subscribe to. */
      readonly names: readonly string[]
      /** How many events to wait for. */
      readonly count: number
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'manifest'
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'recommend'
      /** The capability to ask about. */
      readonly capability: string
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  /** Reads what the reference in the result of a tool stands for. */
  | {
      /** The kind of the step. */
      readonly do: 'reference'
      /** The tool to call. */
      readonly tool: string
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  /** A transaction of these calls; it is committed, or rolled back where one fails. */
  | {
      /** The kind of the step. */
      readonly do: 'transaction'
      /** The calls of the transaction, in order. */
      readonly calls: readonly {
        /** The tool to call. */
        tool: string
        /** The arguments to send. Default: none. */
        arguments?: Json
      }[]
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  // ── a host
  | {
      /** The kind of the step. */
      readonly do: 'say'
      /** What the user says. */
      readonly text: string
      /** The conversation of the message. Default: the first one. */
      readonly conversation?: string
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'rollback'
      /** The feature set to roll back. */
      readonly set: string
      /** The checkpoint to roll back to. */
      readonly checkpoint: string
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  | {
      /** The kind of the step. */
      readonly do: 'select'
      /** The feature sets to enable. */
      readonly enabled: readonly string[]
      /** The feature sets to disable. */
      readonly disabled: readonly string[]
      /** The scope lists of feature sets, by name. */
      readonly scopes?: LiveWishes['scopes']
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }
  /** Stays until the server says that it is done: it lists a tool of this name, and announces the change. */
  | {
      /** The kind of the step. */
      readonly do: 'stay'
      /** The longest time to stay, in milliseconds. */
      readonly ms: number
      /** The name of the step in the report of the client. Default: the kind. */
      readonly as?: string
    }

/** A folder that the client shows to servers. */
interface Root {
  /** The `file:` URI of the folder. */
  readonly uri: string
  /** The name that people see. */
  readonly name?: string
}

/** How a client makes a call. */
export interface CallWishes {
  /** Asks for progress notifications. */
  readonly progress?: boolean
  /** Cancels after the first progress notification, or after this many milliseconds without one. */
  readonly cancel?: number
  /** Runs the call as a task. */
  readonly task?: boolean
  /** How long the answer may take, in milliseconds. */
  readonly timeout?: number
  /** Reads the result in chunks. */
  readonly stream?: boolean
  /** The most units that the call may cost. */
  readonly budget?: number
  /** What the call is for, in a sentence. */
  readonly intent?: string
  /** The conversation that the call belongs to. */
  readonly conversation?: string
}

/** What the client answers when it is asked. It should not declare what is absent here. */
export interface Answers {
  /** The answer to every question to the user. */
  readonly elicit?: {
    /** What the user does with the question. */
    readonly action: 'accept' | 'decline' | 'cancel'
    /** The content of an accepted form. */
    readonly content?: Json
  }
  /** The text that the model answers to every sampling request. */
  readonly sample?: string
  /** Whether sampling requests may bring tools. */
  readonly sampleTools?: boolean
  /** The roots that the client shows. */
  readonly roots?: readonly Root[]
  /** What the user answers if a call needs confirmation. Absent: there is no user. */
  readonly confirm?: boolean
  /** What the user answers if the cost of a call is unknown. Absent: there is no user. */
  readonly cost?: boolean
  /** Whether suggestions of the server are followed. */
  readonly suggestion?: boolean
  /** Whether the server may learn what calls are for. */
  readonly intent?: boolean
  /** Whether missing scopes can be obtained. */
  readonly authorize?: boolean
  /** How often a failed call may be repeated. */
  readonly retries?: number
  /** How the client gets a token, if the server requires one. Absent: it has none. */
  readonly signIn?: SignInWay
  /** How a host of MCP Live is configured. */
  readonly live?: LiveWishes
}

/** `code`: as if a user signed in with a browser; the page redirects at once. `client-credentials`: as this client. */
export type SignInWay =
  | {
      /** The way to get a token. */
      readonly way: 'code'
    }
  | {
      /** The way to get a token. */
      readonly way: 'client-credentials'
      /** The client id at the authorization server. */
      readonly clientId: string
      /** The client secret at the authorization server. */
      readonly clientSecret: string
    }

/** How a host under test is configured. */
export interface LiveWishes {
  /** The feature sets to enable. */
  readonly enabled: readonly string[]
  /** The feature sets to disable. */
  readonly disabled: readonly string[]
  /** The scope lists of feature sets, by name. */
  readonly scopes?: Readonly<
    Record<
      string,
      {
        /** Scopes that are allowed without a question. */
        readonly whitelist?: readonly string[]
        /** Scopes that are refused. */
        readonly blacklist?: readonly string[]
      }
    >
  >
  /** What the model of the host answers, turn by turn. */
  readonly model?: readonly (
    | string
    | {
        /** The tool that the model calls. */
        readonly call: string
        /** The arguments of that call. Default: none. */
        readonly arguments?: Json
      }
  )[]
  /** What the user answers if more rights are requested. */
  readonly approve?: boolean
  /** How many pushed events per minute the host accepts. */
  readonly pushes?: number
}

/** How the scripted server answers a method: with this result, with this error, or by a handler. Undefined: it does not have the method. */
export type ServedMethods = Readonly<Record<string, Json | Refusal | Handler | undefined>>

/** One run of the client against one behaviour of a server. Scenarios that look at the same play share it. */
export interface Play {
  /** The name of the play. */
  readonly name: string
  /** What the client does, in order. */
  readonly steps: readonly Step[]
  /** What the client answers when it is asked. */
  readonly answers?: Answers
  /** Whether the client reports at the end what came of each step, by calling the tool `test-report`. */
  readonly report?: boolean
  /** Whether the client finds out the revision itself. */
  readonly free?: boolean
  /** The capabilities that the server advertises, fixed or by revision. Default: those that its tools need. */
  readonly capabilities?: Json | ((revision: RevisionId) => Json)
  /** Tools in addition to, or instead of, `test-tool`. */
  readonly tools?: readonly Json[]
  /** Answers in addition to, or instead of, those for the handshake and the tools. */
  readonly on?: ServedMethods | ((server: ScriptedServer) => ServedMethods)
  /** Sees HTTP requests first. True: it has answered. */
  readonly http?: (server: ScriptedServer) => (http: HttpHead, response: HttpResponse, body: string) => boolean
  /** Starts what must run in addition to the server. It is closed after the play. */
  readonly beside?: (server: ScriptedServer) => Promise<{
    /** Closes it after the play. */
    close(): Promise<void>
  }>
  /** Whether HTTP responses are event streams. */
  readonly streams?: boolean
  /** Whether a GET gets no stream. */
  readonly inputClosed?: boolean
  /** The message endpoint that the HTTP+SSE carrier announces. */
  readonly endpoint?: (server: ScriptedServer) => string
  /** Whether nothing else may run at the same time, because the play uses much CPU. */
  readonly alone?: boolean
  /** How long the client may take, in milliseconds. Default 30,000. */
  readonly ms?: number
  /** How long the server waits for a response of the client, in milliseconds. Default 2,000. */
  readonly waitMs?: number
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
