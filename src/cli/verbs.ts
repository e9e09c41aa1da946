/** Every verb by its name: what it is for, and where it is found when it is asked for. */
import type { Verb } from './program.ts'

export const groups = {
  use: 'Look at a server and use it:',
  make: 'Make one:',
  judge: 'Judge it, keep what it said:',
  run: 'Run many:',
  shell: 'The shell:',
} as const

export interface VerbEntry {
  readonly name: string
  readonly summary: string
  readonly group: keyof typeof groups
  /** Loads the file of the verb. */
  readonly load: () => Promise<Verb>
}

export const verbs: readonly VerbEntry[] = [
  {
    name: 'list',
    summary: 'What a server offers: tools, resources, templates, prompts, events',
    group: 'use',
    load: async () => (await import('./commands/list.ts')).list,
  },
  {
    name: 'call',
    summary: 'Call a tool: vivarium call TARGET TOOL key=value …',
    group: 'use',
    load: async () => (await import('./commands/call.ts')).call,
  },
  {
    name: 'read',
    summary: 'Read a resource: vivarium read TARGET URI',
    group: 'use',
    load: async () => (await import('./commands/read.ts')).read,
  },
  {
    name: 'prompt',
    summary: 'Fill in a prompt: vivarium prompt TARGET NAME key=value …',
    group: 'use',
    load: async () => (await import('./commands/prompt.ts')).prompt,
  },
  {
    name: 'listen',
    summary: 'What a server says by itself: events, pushes, updates, changes',
    group: 'use',
    load: async () => (await import('./commands/listen.ts')).listen,
  },
  {
    name: 'inspect',
    summary: 'What a server is: revision, extensions, scopes, cost',
    group: 'use',
    load: async () => (await import('./commands/inspect.ts')).inspect,
  },
  {
    name: 'doctor',
    summary: 'Why a server or a config does not work, and the fix',
    group: 'use',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'new',
    summary: 'Begin a server: one TypeScript file, with tests',
    group: 'make',
    load: async () => (await import('./commands/new.ts')).newServer,
  },
  {
    name: 'serve',
    summary: 'Serve a file that exports a server, over HTTP or stdio',
    group: 'make',
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'bundle',
    summary: 'Make server.json and an MCPB bundle of a server',
    group: 'make',
    load: async () => (await import('./commands/bundle.ts')).bundle,
  },
  {
    name: 'record',
    summary: 'Write down what passes between a client and a server',
    group: 'judge',
    load: async () => (await import('./commands/record.ts')).record,
  },
  {
    name: 'replay',
    summary: 'Send a recording again and show what differs, or serve it as a mock',
    group: 'judge',
    load: async () => (await import('./commands/replay.ts')).replay,
  },
  {
    name: 'gateway',
    summary: 'One endpoint in front of many servers, by a config file',
    group: 'run',
    load: async () => (await import('./commands/gateway.ts')).gateway,
  },
  {
    name: 'test',
    summary: 'Judge a server: does it keep what the protocol demands?',
    group: 'judge',
    load: async () => (await import('./commands/test.ts')).test,
  },
  {
    name: 'up',
    summary: 'The live host in the terminal, on a config file',
    group: 'run',
    load: async () => (await import('./commands/up.ts')).up,
  },
  {
    name: 'completions',
    summary: 'Completions for bash, zsh or fish',
    group: 'shell',
    load: async () => (await import('./commands/completions.ts')).completions,
  },
]
