import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { type FindMembers, findOptionProblems, withOptions } from './check-option-docs.ts'
import { findType, sourceFile } from './schemas/declarations.ts'
import { membersOf } from './schemas/type-schema.ts'

const folder = mkdtempSync(join(tmpdir(), 'options-'))
const path = join(folder, 'sample.ts')
writeFileSync(
  path,
  `interface Base {
  /** Its name. */
  readonly name: string
}
export interface Outer extends Base {
  /** What may be kept. */
  readonly inner?: Inner | false
  /**
   * How long.
   * @default 5s
   */
  readonly wait?: Duration
  /** Called | told. */
  readonly onEnd?: (reason: string) => void
  /**
   * The former name of wait.
   * @deprecated Use wait.
   */
  readonly delay?: number
  /** By name. */
  readonly lists?: Readonly<Record<string, readonly ('a' | 'b')[]>>
}
export interface Inner {
  /** Deep. */
  readonly deep?: { readonly x: number }
}
`,
)
afterAll(() => rmSync(folder, { recursive: true }))

const find: FindMembers = (_, type) => {
  const declared = findType(type, sourceFile(path))
  return declared === undefined ? undefined : membersOf(declared.node, declared.file)
}

const cells = (text: string): string[][] =>
  text
    .split('\n')
    .filter(line => line.startsWith('| `'))
    .map(line =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map(cell => cell.trim()),
    )

it('a table of options has a row for each member, with its type, its default and a link to the table of its type', () => {
  const pages = [
    { path: 'docs/reference/a.md', text: '## Outer\n\n<!-- options: a Outer -->\n' },
    { path: 'docs/reference/b.md', text: '## The inner one\n\n<!-- options: a Inner -->\n' },
  ]
  const [outer, inner] = withOptions(pages, find)
  expect(cells(outer?.text ?? '')).toEqual([
    ['`name`, required', 'string', 'Its name.'],
    ['`inner`', '[`Inner`](b.md#the-inner-one) or `false`', 'What may be kept.'],
    ['`wait`', '`Duration`', 'How long. Default: `5s`.'],
    ['`onEnd`', 'function', 'Called \\| told.'],
    ['`lists`', "map of list of (`'a'` or `'b'`)", 'By name.'],
  ])
  expect(cells(inner?.text ?? '')).toEqual([['`deep`', 'object', 'Deep.']])
  expect(
    withOptions(
      [outer, inner].filter(each => each !== undefined),
      find,
    ),
  ).toEqual([outer, inner])
})

it('a table leaves out what another type has too, where it is told to', () => {
  const [page] = withOptions([{ path: 'docs/reference/a.md', text: '<!-- options: a Outer beyond Base -->\n' }], find)
  expect(cells(page?.text ?? '').map(([name]) => name)).toEqual(['`inner`', '`wait`', '`onEnd`', '`lists`'])
})

it('a table of an unknown type, and a public type without a table, are problems', () => {
  const pages = [{ path: 'docs/reference/a.md', text: '<!-- options: a Missing -->\n\n<!-- options: a Outer -->\n' }]
  expect(findOptionProblems(pages, find, ['a Outer', 'a Inner'])).toEqual([
    'docs/reference/a.md: vivarium/a exports no interface Missing',
    expect.stringContaining('a Inner has no table'),
  ])
})
