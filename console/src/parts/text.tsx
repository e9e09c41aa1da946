/**
 * Text of others. Characters that nobody sees, or that turn the reading direction, are drawn as ⟨U+202E⟩, so that what is read is what is
 * there. Nothing that a peer says is ever HTML: it becomes text nodes.
 */
import type { ReactNode } from 'react'

/** Controls but tab and line feed, marks without a shape of their own, direction marks, variation selectors, tags. */
const hidden = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}]--[\t\n]]/gv

/** The same text with hidden characters spelled out. */
export function spellOut(text: string): string {
  return text.replace(hidden, spelled)
}

function spelled(character: string): string {
  return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`
}

/** Foreign text, with hidden characters marked. */
export function Text({ children, most }: { readonly children: string; readonly most?: number }): ReactNode {
  const cut = most !== undefined && children.length > most
  const shown = cut ? children.slice(0, most) : children
  const parts: ReactNode[] = []
  let end = 0
  for (const match of shown.matchAll(hidden)) {
    parts.push(shown.slice(end, match.index))
    parts.push(
      <mark key={match.index} className="hidden-character" title="A character that is not visible by itself">
        {spelled(match[0])}
      </mark>,
    )
    end = match.index + match[0].length
  }
  parts.push(shown.slice(end))
  if (cut) parts.push(<span key="cut">{`… (${children.length.toLocaleString('en')} characters)`}</span>)
  return parts
}
