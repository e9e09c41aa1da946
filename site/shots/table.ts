/** Which screenshots there are, and where the site shows them. They are made from what real commands print, never drawn by hand. */
import { html, type Markup } from '../html.ts'

interface Place {
  readonly name: string
  /** Address of the page that shows it, and the anchor of the heading it stands under; the front page has a place for one. */
  readonly on: string
  readonly under?: string
  /** What is seen, for those who do not see it. */
  readonly alt: string
}

/** Commands in a terminal, in the repository. */
export interface TerminalShot extends Place {
  readonly kind: 'terminal'
  readonly columns: number
  readonly commands: readonly Command[]
}

export interface Command {
  /** What stands behind the prompt, and what is run: words of the `vivarium` command. */
  readonly words: readonly string[]
  /** Lines that are typed, each after something has been printed. */
  readonly typed?: readonly { readonly after: string; readonly line: string }[]
  /** Only lines from the first to the last that fit are shown. */
  readonly from?: RegExp
  readonly most?: number
}

/** A page of a server that the shot starts. */
export interface PageShot extends Place {
  readonly kind: 'page'
  readonly width: number
  readonly height: number
  /** Starts what serves the page; `ready` is an expression that becomes true in it. */
  start(): Promise<{ readonly url: string; readonly ready: string; close(): Promise<void> }>
}

export type ShotEntry = TerminalShot | PageShot

export const SHOTS: readonly ShotEntry[] = [
  {
    kind: 'terminal',
    name: 'list',
    on: 'reference/cli',
    under: 'targets',
    alt: 'vivarium list prints the tools of the notes server with their arguments, its resource template and its prompt.',
    columns: 88,
    commands: [{ words: ['list', 'examples/notes/server.ts'] }],
  },
  {
    kind: 'terminal',
    name: 'call',
    on: 'reference/cli',
    under: 'output',
    alt: 'vivarium call write_note prints the structured result of the call; a second call finds the note.',
    columns: 88,
    commands: [
      { words: ['call', 'examples/notes/server.ts', 'write_note', 'name=shopping', 'text=milk'] },
      { words: ['call', 'examples/notes/server.ts', 'find_notes', 'text=milk'] },
    ],
  },
  {
    kind: 'terminal',
    name: 'test',
    on: 'guide/conformance',
    under: 'what-is-run',
    alt: 'vivarium test prints a table: for each revision, how many scenarios passed, failed and were skipped.',
    columns: 88,
    commands: [{ words: ['test', 'examples/notes/server.ts'], from: /^notes / }],
  },
  {
    kind: 'terminal',
    name: 'doctor',
    on: 'start/first-server',
    under: 'give-it-to-a-client',
    alt: 'vivarium doctor checks each server of a config and says whether it can be started and what it offers.',
    columns: 100,
    commands: [{ words: ['doctor', 'examples/notes/server.ts'] }],
  },
  {
    kind: 'terminal',
    name: 'gateway-check',
    on: 'guide/gateway',
    under: 'check-a-file',
    alt: 'vivarium gateway --check lists each upstream with its revision and says of each tool which rule decides.',
    columns: 100,
    commands: [{ words: ['gateway', 'examples/gateway/gateway.yaml', '--check'], most: 24 }],
  },
  {
    kind: 'terminal',
    name: 'agent',
    on: 'guide/host-terminal',
    under: 'what-you-can-type',
    alt: 'A session of vivarium up: the agent remembers a fact with a tool, a server adds it to the next prompt, and /undo takes the turn back.',
    columns: 100,
    commands: [
      {
        words: ['up', '--config', 'examples/host/mcp.json', '--trust'],
        typed: [
          { after: 'Ctrl-D ends.', line: 'Remember that Kim likes green tea' },
          { after: 'turn 1', line: 'What does Kim like?' },
          { after: 'turn 2', line: '/undo' },
          { after: 'is undone', line: '/quit' },
        ],
      },
    ],
  },
  {
    kind: 'terminal',
    name: 'front',
    on: '',
    alt: 'An agent in the terminal: it remembers a fact with a tool, a server adds it to the next prompt, and /undo takes the turn back.',
    columns: 96,
    commands: [
      {
        words: ['up', '--config', 'examples/host/mcp.json', '--trust'],
        typed: [
          { after: 'Ctrl-D ends.', line: 'Remember that Kim likes green tea' },
          { after: 'turn 1', line: 'What does Kim like?' },
          { after: 'turn 2', line: '/undo' },
          { after: 'is undone', line: '/quit' },
        ],
        from: /^› Remember/,
      },
    ],
  },
]

/** A screenshot that was made. */
export interface Shot extends Place {
  readonly file: string
  readonly width: number
  readonly height: number
}

export const shotsOf = (shots: readonly Shot[], address: string): readonly Shot[] => shots.filter(({ on }) => on === address)

/** `root` leads from the page to the root of the site. */
export function shotFigure({ name, alt, width, height }: Shot, root: string): Markup {
  const file = `${root}assets/${name}.webp`
  return html`<figure class="shot"><a href="${file}"><img src="${file}" alt="${alt}" width="${width}" height="${height}" loading="lazy" decoding="async"></a></figure>\n`
}
