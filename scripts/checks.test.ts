import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { diffLists, writeList } from './check-api.ts'
import { findBrokenLinks, findDecisionProblems } from './check-docs.ts'
import { writeFull, writeIndex } from './check-llms.ts'
import { missingEntries } from './check-lock.ts'
import { findNameProblems, findParticiples } from './check-names.ts'
import { findSizeProblems } from './check-size.ts'
import { listFiles, root } from './lib/files.ts'
import { findOrphans, findPageProblems } from './lib/pages.ts'

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

describe('check-docs, of pages', () => {
  const fine = '# Stores\n\nA store keeps data. You choose one.\n'

  it('accepts a page with a title and a sentence, in a folder with a role', () => {
    expect(findPageProblems('docs/guide/stores.md', fine)).toEqual([])
    expect(findPageProblems('docs/glossary.md', '# Words\n\n`words` of all pages:\n\n- store\n')).toEqual([])
  })

  it('finds a page without a title, without a first sentence, too long, or in a folder without a role', () => {
    const first = (path: string, text: string) => findPageProblems(path, text).map(line => line.split('; ')[0])
    expect(first('docs/guide/a.md', fine.slice(2))).toEqual(['docs/guide/a.md:1: a page starts with its title, as "# Title"'])
    for (const block of ['## Use', '- one. two.', '```sh\nls\n```', '| a. |', 'No end'])
      expect(first('docs/guide/a.md', `# A\n\n${block}\n`)).toEqual([
        expect.stringContaining('docs/guide/a.md:3: after the title'),
      ])
    expect(first('docs/guide/a.md', `${fine}${'x\n'.repeat(248)}`)).toEqual(['docs/guide/a.md:251: 251 lines, at most 250'])
    expect(first('docs/notes/a.md', fine)).toEqual(['docs/notes/a.md: docs/notes/ has no role'])
    expect(first('docs/a.md', fine)).toEqual(['docs/a.md: docs/a.md has no role'])
  })

  it('finds pages that no link from the index reaches, directly or by way of others', () => {
    const pages = new Map([
      ['docs/index.md', '[a](guide/a.md)'],
      ['docs/guide/a.md', '[b](../reference/b.md#there) [web](https://example.com)'],
      ['docs/reference/b.md', ''],
      ['docs/reference/c.md', '[a](../guide/a.md)'],
    ])
    expect(findOrphans(pages).map(line => line.split(':')[0])).toEqual(['docs/reference/c.md'])
  })
})

describe('check-names', () => {
  const found = (path: string, source: string) => findNameProblems(path, source).map(line => /"(\w+)" has/.exec(line)?.[1])

  it('finds listed words inside identifiers, in all their forms, once for each name of a file', () => {
    const source = 'const { httpDoor } = a\nhttpDoor(b)\nclass SeatedGuest { #dooms = 1; #doomed = 2 }\n'
    expect(found('src/core/a.ts', source)).toEqual(['httpDoor', 'SeatedGuest', 'doomed'])
    expect(findNameProblems('src/core/a.ts', source)[0]).toMatch(/^src\/core\/a\.ts:1: .*; say what it is: acceptor/)
  })

  it('leaves strings, comments and words that only begin alike', () => {
    expect(found('src/core/a.ts', "// a door\nconst indoors = 'door' + doormat + facet\n")).toEqual([])
  })

  it('finds them in file names, and lets deprecated aliases be in their file', () => {
    expect(findNameProblems('src/core/front-door.ts', '')).toHaveLength(1)
    expect(found('src/server/api.ts', 'interface A { door: B; seat: C }')).toEqual(['seat'])
  })

  it('finds types that are named by a bare participle, and lets errors, longer names and public names be', () => {
    const source = `interface Told<T> extends Frame {}
type Planned = string
class Held {}
class Guarded extends AuthorizationError {}
interface PlannedCall {}
type Feed = 1
import { type Sent, type Seen } from './a.ts'
// type Marked = 1
`
    const names = findParticiples('src/a/b.ts', source).map(problem => /"(\w+)"/.exec(problem)?.[1])
    expect(names).toEqual(['Told', 'Planned', 'Held'])
    expect(findParticiples('src/host/state/book.ts', 'export interface Sent {}')).toEqual([])
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

describe('tests', () => {
  it('wait for what comes as long as a busy machine needs: `until` of test/until.ts, not the second of `vi.waitFor`', () => {
    const hasty = listFiles(['src', 'test', 'scripts', 'examples'], /\.ts$/).filter(
      path => path !== 'test/until.ts' && /\bvi\.wait(?:For|Until)\(/.test(readFileSync(join(root, path), 'utf8')),
    )
    expect(hasty).toEqual([])
  })
})
