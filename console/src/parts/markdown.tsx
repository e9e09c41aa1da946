/**
 * The text of a model with its markup. Tokens of the lexer become elements of ours; HTML and images stay the characters that they are, so
 * nothing that a model says is loaded or run.
 */
import { Lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { memo, type ReactNode, useMemo } from 'react'
import { ForeignLink } from './foreign-link.tsx'
import { ScrollRegion } from './scroll-region.tsx'
import { Text } from './text.tsx'

/** Longer texts are shown without markup: it would be computed anew for each piece that arrives. */
const longest = 100_000

export function Markdown({ children }: { readonly children: string }): ReactNode {
  const tokens = useMemo(() => tokensOf(children), [children])
  if (tokens === undefined) {
    return (
      <p className="break-words whitespace-pre-wrap">
        <Text>{children}</Text>
      </p>
    )
  }
  return (
    <div className="space-y-2.5 break-words">
      {tokens.map((token, index) => (
        <Block key={index} token={token} raw={token.raw} />
      ))}
    </div>
  )
}

/** Undefined where the text is better shown as it is: too long, or nested deeper than the lexer can follow. */
function tokensOf(text: string): readonly Token[] | undefined {
  if (text.length > longest) return undefined
  try {
    return Lexer.lex(text, { gfm: true })
  } catch {
    return undefined
  }
}

interface BlockProps {
  readonly token: Token
  /** Same text, same elements: only the last block of an answer that is being written is drawn anew. */
  readonly raw: string
}

const Block = memo(
  ({ token }: BlockProps): ReactNode => <Element token={token as MarkedToken} />,
  (before, after) => before.raw === after.raw,
)

function Element({ token }: { readonly token: MarkedToken }): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      // Not a heading of the page, which readers of screens jump to.
      return (
        <p className={token.depth < 3 ? 'text-[1.1em] font-semibold' : 'font-semibold'}>
          <Children of={token.tokens} />
        </p>
      )
    case 'paragraph':
      return (
        <p>
          <Children of={token.tokens} />
        </p>
      )
    case 'code':
      return (
        <ScrollRegion label={token.lang ? `Code, ${token.lang}` : 'Code'}>
          <Text>{token.text}</Text>
        </ScrollRegion>
      )
    case 'blockquote':
      return (
        <blockquote className="space-y-2 border-l-3 border-line-strong pl-3 text-muted">
          <Children of={token.tokens} />
        </blockquote>
      )
    case 'list':
      return <List list={token} />
    case 'table':
      return <Table table={token} />
    case 'hr':
      return <hr className="border-line" />
    case 'strong':
      return (
        <strong>
          <Children of={token.tokens} />
        </strong>
      )
    case 'em':
      return (
        <em>
          <Children of={token.tokens} />
        </em>
      )
    case 'del':
      return (
        <del>
          <Children of={token.tokens} />
        </del>
      )
    case 'codespan':
      return (
        <code className="rounded bg-code px-1 font-mono text-[0.93em]">
          <Text>{token.text}</Text>
        </code>
      )
    case 'br':
      return <br />
    case 'link':
      return <ForeignLink address={token.href} text={token.text} raw={token.raw} />
    case 'checkbox':
      return <span>{token.checked ? '☑ ' : '☐ '}</span>
    case 'text':
      return token.tokens === undefined ? <Text>{token.text}</Text> : <Children of={token.tokens} />
    case 'escape':
      return <Text>{token.text}</Text>
    default:
      return <Text>{token.raw}</Text>
  }
}

function Children({ of }: { readonly of: readonly Token[] }): ReactNode {
  return of.map((token, index) => <Element key={index} token={token as MarkedToken} />)
}

function List({ list: { ordered, start, items } }: { readonly list: Tokens.List }): ReactNode {
  const rows = items.map((item, index) => (
    <li key={index}>
      <Children of={item.tokens} />
    </li>
  ))
  if (!ordered) return <ul className="list-disc space-y-1 pl-6">{rows}</ul>
  return (
    <ol start={start === '' ? 1 : start} className="list-decimal space-y-1 pl-6">
      {rows}
    </ol>
  )
}

function Table({ table: { header, rows } }: { readonly table: Tokens.Table }): ReactNode {
  const cells = 'border border-line px-2 py-1 text-left align-top'
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable for the arrow keys
    <section aria-label="Table" tabIndex={0} className="overflow-x-auto">
      <table>
        <thead>
          <tr>
            {header.map(({ tokens }, index) => (
              <th key={index} scope="col" className={`${cells} bg-code font-semibold`}>
                <Children of={tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map(({ tokens }, column) => (
                <td key={column} className={cells}>
                  <Children of={tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
