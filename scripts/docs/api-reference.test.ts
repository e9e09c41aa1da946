import { dirname, join } from 'node:path/posix'
import { describe, expect, it } from 'vitest'
import { apiPages } from './api-reference.ts'
import { explain } from './comments.ts'
import { exportsByEntry } from './entry-exports.ts'

const pages = new Map((await apiPages()).map(({ path, text }) => [path, text]))
const page = (name: string): string => pages.get(`reference/api/${name}.md`) ?? ''
const withoutCode = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, '')

/** The anchors of a page, as GitHub makes them. */
function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>()
  const titles = [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title)
  return new Set(
    titles.map(title => {
      const slug = title
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .replace(/\s/g, '-')
      const times = seen.get(slug) ?? 0
      seen.set(slug, times + 1)
      return times === 0 ? slug : `${slug}-${times}`
    }),
  )
}

/** The row of a table, cell by cell. */
function rowOf(text: string, name: string): readonly string[] | undefined {
  const line = text.split('\n').find(each => each.startsWith(`| \`${name}\` |`))
  return line
    ?.split(/(?<!\\)\|/)
    .slice(1, -1)
    .map(cell => cell.trim())
}

describe('the API reference', () => {
  it('has every export of every entry', () => {
    for (const [entry, all] of exportsByEntry()) {
      const own = [...pages].filter(
        ([path]) => path === `reference/api/${entry}.md` || path.startsWith(`reference/api/${entry}-`),
      )
      const text = own.map(each => each[1]).join('\n')
      const missing = all.filter(({ name }) => !text.includes(`# ${name}\n`) && !text.includes(`[\`${name}\`](`))
      expect(missing.map(({ name }) => `${entry}: ${name}`)).toEqual([])
    }
  })

  it('leads by every link to a heading that is there', () => {
    const anchors = new Map([...pages].map(([path, text]) => [path, anchorsOf(text)]))
    const broken = [...pages].flatMap(([path, text]) =>
      [...withoutCode(text).matchAll(/\]\(([^)#]*)(?:#([^)]*))?\)/g)].flatMap(([link, file = '', anchor]) => {
        const found = anchors.get(file === '' ? path : join(dirname(path), file))
        return found === undefined || (anchor !== undefined && !found.has(anchor)) ? [`${path}: ${link}`] : []
      }),
    )
    expect(broken).toEqual([])
  })

  it('has tables whose rows are as long as their heads', () => {
    const uneven = [...pages].flatMap(([path, text]) =>
      withoutCode(text)
        .split(/\n\n/)
        .filter(block => block.startsWith('|'))
        .flatMap(block => {
          const lengths = block
            .trim()
            .split('\n')
            .map(line => line.split(/(?<!\\)\|/).length)
          return new Set(lengths).size === 1 ? [] : [`${path}: ${block.slice(0, 80)}`]
        }),
    )
    expect(uneven).toEqual([])
  })

  it('tells of each option its type, its default and what it does', () => {
    expect(rowOf(page('server-tool-options'), 'timeout')).toEqual([
      '`timeout`',
      expect.stringMatching(/^\[`Duration`\]\(/),
      expect.stringMatching(/^How long one call may take\. .*Default: as long as the caller waits\.$/),
    ])
    expect(rowOf(page('server-tool-options'), 'confirm')?.[1]).toBe('`true \\|` [`ConfirmFacts`](#confirmfacts)')
    expect(rowOf(page('server-server-options'), 'name')?.[2]).toMatch(/^\*\*Required\.\*\* /)
    expect(rowOf(page('server-server-options'), 'pageSize')?.[2]).toMatch(/ Default: 500\.$/)
    expect(rowOf(page('server-tool-options'), 'rate')?.[1]).toBe('`{ … }`')
    expect(rowOf(page('client-connect-options'), 'rates.elicit')?.[2]).toMatch(/questions/)
    expect(rowOf(page('client-connect-options'), 'onElicit')?.[2]).toMatch(/elicitation/)
  })

  it('shows members that come from what a type extends, and not those that an Omit leaves out', () => {
    const [listening = ''] = page('server-serve-http-options').split('## Types used here')
    expect(rowOf(listening, 'ssePath')).toBeDefined()
    expect(rowOf(listening, 'streams')).toBeUndefined()
    expect(page('client-client')).toContain('## callTool()')
    expect(page('client-client')).not.toContain('## caller()')
    expect(page('server-context')).not.toContain('exchangeOf')
  })

  it('breaks a long signature into its parameters, without the comments of the source', () => {
    expect(page('server-server')).toContain(
      'tool<I extends Schema, O extends Schema>(\n  name: string,\n  options: ToolOptions<I, O>,\n  handler: (args: Arguments<I>, context: Context) =>',
    )
    expect([...pages.values()].join('')).not.toMatch(/\ue000|\/\*\* /)
  })

  it('writes the same pages each time', async () => {
    expect(new Map((await apiPages()).map(({ path, text }) => [path, text]))).toEqual(pages)
  })
})

describe('a doc comment', () => {
  it('gives its default apart from its text', () => {
    expect(explain('/** How long it waits. Default 5 s. Longer is refused. */')).toMatchObject({
      text: 'How long it waits. Longer is refused.',
      usual: '5 s',
    })
    expect(explain('/** Where it is. Default: `a.b` or none. */').usual).toBe('`a.b` or none')
    expect(explain('/**\n * How many.\n * @default 3\n */')).toMatchObject({ text: 'How many.', usual: '`3`' })
    expect(explain('/** Default 7. */')).toMatchObject({ text: 'Default 7.', usual: '7' })
  })

  it('keeps the lines of an example and the paragraphs of the text', () => {
    const { text, examples } = explain('/**\n * One\n * line.\n *\n * Another.\n * @example\n * if (a) {\n *   b()\n * }\n */')
    expect(text).toBe('One line.\n\nAnother.')
    expect(examples).toEqual(['if (a) {\n  b()\n}'])
  })
})
