import { describe, expect, it } from 'vitest'
import { diffLists, writeList } from './check-api.ts'
import { findBrokenLinks, findDecisionProblems } from './check-docs.ts'
import { writeFull, writeIndex } from './check-llms.ts'
import { missingEntries } from './check-lock.ts'
import { findSizeProblems } from './check-size.ts'
import { findMentioned, findUndocumented, findUndocumentedExports } from './lib/documented.ts'

describe('check-size', () => {
  it('stops source at 400 lines and tests at 600', () => {
    expect(findSizeProblems('src/core/a.ts', 'x\n'.repeat(400))).toEqual([])
    expect(findSizeProblems('src/core/a.ts', 'x\n'.repeat(401))).toEqual([
      'src/core/a.ts:401: 401 lines, at most 400; split it by ideas',
    ])
    expect(findSizeProblems('src/core/a.test.ts', 'x\n'.repeat(600))).toEqual([])
    expect(findSizeProblems('README.md', 'x\n'.repeat(121))).toHaveLength(1)
  })

  it('finds unfinished and loose code, but not words about it', () => {
    const text = `const a: ${'any'} = b as ${'any'}\n// ${'TO'}DO later\nit.${'skip'}('x')\nconst s = ': any' // as any\n`
    expect(findSizeProblems('src/core/a.ts', text).map(problem => problem.split('; ')[0])).toEqual([
      'src/core/a.ts:1: ": any"',
      'src/core/a.ts:1: "as any"',
      'src/core/a.ts:2: "TODO"',
      'src/core/a.ts:3: ".skip("',
    ])
  })
})

describe('a table in a plain object', () => {
  it('is found where it lasts; what a function builds and gives away is not one', () => {
    const lasting = [
      'const a: Record<string, Tool> = {}',
      '  readonly #b: Record<string, unknown> = {}',
      '  c: Record<string, X> = {}',
    ]
    for (const text of lasting) expect(findSizeProblems('src/core/a.ts', text)).toHaveLength(1)
    expect(findSizeProblems('src/core/a.ts', '  const built: Record<string, unknown> = {}\n')).toEqual([])
  })
})

describe('check-api', () => {
  const list = writeList(
    new Map([
      [
        'server',
        `export { b, type T, x as a } from './x.ts'\nexport type { U } from './u.ts'\nexport function c() {}\nexport interface I {}`,
      ],
    ]),
  )

  it('lists values before types, each sorted', () => {
    expect(list.split('\n').slice(2, -1)).toEqual(['vivarium/server', '  a', '  b', '  c', '  type I', '  type T', '  type U'])
  })

  it('shows a difference name by name', () => {
    expect(diffLists(list, list.replace('  b\n', '  d\n'))).toEqual(['- vivarium/server  b', '+ vivarium/server  d'])
  })
})

describe('check-docs', () => {
  const pages: Record<string, string> = {
    'docs/a.md':
      '# One `two` three\n[ok](b.md#deep-down) [self](#one-two-three) [web](https://x.y) `[code](gone.md)`\n[bad](gone.md) [worse](b.md#nowhere)\n',
    'docs/b.md': '## Deep down\n',
  }
  const tree = { exists: (path: string) => path in pages, read: (path: string) => pages[path] ?? '' }

  it('follows links to files and headings', () => {
    expect(findBrokenLinks('docs/a.md', tree)).toEqual([
      'docs/a.md:3: link to docs/gone.md, which does not exist',
      'docs/a.md:3: docs/b.md has no heading #nowhere',
    ])
  })

  it('wants decisions numbered, each number once', () => {
    const problems = findDecisionProblems(['docs/decisions/0001-a.md', 'docs/decisions/0001-b.md', 'docs/decisions/x.md'])
    expect(problems).toEqual([expect.stringContaining('number 0001 is taken'), expect.stringContaining('NNNN-title.md')])
  })
})

describe('check-lock', () => {
  it('adds the platform packages that the registry did not offer', () => {
    const packages = {
      '': {},
      'node_modules/tool': {
        version: '1.0.0',
        dev: true,
        optionalDependencies: { '@tool/cli-linux-x64-musl': '1.0.0', '@tool/cli-linux-x64': '1.0.0' },
      },
      'node_modules/@tool/cli-linux-x64': { version: '1.0.0' },
    }
    expect(missingEntries(packages)).toEqual({
      'node_modules/@tool/cli-linux-x64-musl': {
        version: '1.0.0',
        cpu: ['x64'],
        dev: true,
        libc: ['musl'],
        optional: true,
        os: ['linux'],
      },
    })
  })
})

describe('check-llms', () => {
  const pages = [
    { path: 'docs/guide/b.md', text: '# Bees\n\nThey [fly](a.md#x). And buzz.\n' },
    { path: 'docs/guide/a.md', text: '# Ants\n\n```sh\ncode\n```\n\nThey **walk** all\nday: always.\n' },
    { path: 'docs/decisions/0001-x.md', text: '# 1. X\n\n**Context.** Something.\n' },
    { path: 'README.md', text: '# Vivarium\n\nSee [bees](docs/guide/b.md) and [the web](https://example.com).\n' },
  ]

  it('lists each page once, in sections, with its first sentence', () => {
    expect(writeIndex(pages, 'Short.')).toBe(
      [
        '# Vivarium\n\n> Short.\n',
        '## Start\n\n- [Vivarium](README.md): See bees and the web\n',
        '## Guides\n\n- [Ants](docs/guide/a.md): They walk all day\n- [Bees](docs/guide/b.md): They fly\n',
        '## Optional\n\n- [1. X](docs/decisions/0001-x.md)\n',
      ].join('\n'),
    )
  })

  it('puts all pages but the decisions into one, with links that lead from the root', () => {
    const full = writeFull(pages, 'Short.')
    expect(full).toContain('<!-- docs/guide/b.md -->\n\n# Bees\n\nThey [fly](docs/guide/a.md#x).')
    expect(full).toContain('[the web](https://example.com)')
    expect(full).not.toContain('0001')
  })
})

describe('check-api, of options', () => {
  const files: Readonly<Record<string, string>> = {
    'src/a/index.ts': "export type { AOptions } from './options.ts'\nexport type { Alias } from './options.ts'\n",
    'src/a/options.ts': [
      "import type { Base } from '../b/base.ts'",
      'export interface AOptions extends Omit<Base, "x"> {',
      '  /** Told. */',
      '  readonly told?: string',
      '  readonly silent?: { readonly inner: string }',
      '  /** Both. */',
      '  call(a: string): void',
      '  call(a: number): void',
      '}',
      'export type Alias = Base & string',
      '',
    ].join('\n'),
    'src/b/base.ts': 'export interface Base {\n  readonly inherited?: string\n}\n',
  }

  it('finds members without a comment through re-exports, aliases and what is extended, each with its line', () => {
    const read = (file: string): string | undefined => files[file]
    expect(findUndocumented('AOptions', 'src/a/index.ts', read).map(line => line.split(' has ')[0])).toEqual([
      'src/b/base.ts:2: Base.inherited',
      'src/a/options.ts:5: AOptions.silent',
    ])
    expect(findUndocumented('Alias', 'src/a/index.ts', read)).toHaveLength(1)
    expect(findUndocumented('Missing', 'src/a/index.ts', read)).toEqual([])
  })
})

describe('check-api, of exports', () => {
  it('finds a public name whose declaration has no comment, wherever it is declared', () => {
    const files: Readonly<Record<string, string>> = {
      'src/a/index.ts': "export { told, silent as mute } from './b.ts'\n/** Told here. */\nexport function own() {}\n",
      'src/a/b.ts': '/** Told. */\nexport const told = 1\nexport class silent {}\n',
    }
    expect(findUndocumentedExports(['told', 'mute', 'own'], 'src/a/index.ts', file => files[file])).toEqual([
      'src/a/b.ts:3: mute has no doc comment, and is public',
    ])
  })

  it('finds the options that a public type mentions, in itself and in what it extends', () => {
    const files: Readonly<Record<string, string>> = {
      'src/a/index.ts': "export type { Context } from './b.ts'\n",
      'src/a/b.ts':
        "import type { Base } from './c.ts'\nexport interface Context extends Base {\n  ask(options: AskOptions): Other\n}\n",
      'src/a/c.ts': 'export interface Base {\n  tell(options?: TellOptions): void\n}\n',
    }
    expect(findMentioned('Context', 'src/a/index.ts', file => files[file], /Options$/)).toEqual([
      { name: 'AskOptions', file: 'src/a/b.ts' },
      { name: 'TellOptions', file: 'src/a/c.ts' },
    ])
  })
})
