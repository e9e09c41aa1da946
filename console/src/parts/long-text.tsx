/** A text of any length. Long ones are cut until the reader asks for the rest, so that 5 MB leave the page usable. */
import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { ScrollRegion } from './scroll-region.tsx'
import { Text } from './text.tsx'

const first = 65_536
const more = 1_048_576

export function LongText({ text, label }: { readonly text: string; readonly label: string }): ReactNode {
  const [most, setMost] = useState(first)
  return (
    <figure className="m-0">
      <ScrollRegion label={label}>
        <Text>{text.slice(0, most)}</Text>
      </ScrollRegion>
      {text.length > most && (
        <figcaption className="mt-2 flex items-center gap-3 text-muted">
          {`${most.toLocaleString('en')} of ${text.length.toLocaleString('en')} characters`}
          <Button onClick={() => setMost(most + more)}>Show more</Button>
        </figcaption>
      )}
    </figure>
  )
}
