/** A link of somebody else. It shows where it leads, whatever it is called, and asks before it leaves. */
import { type ReactNode, useState } from 'react'
import { Dialog } from '../frame/dialog.tsx'
import { Button } from './button.tsx'
import { Text } from './text.tsx'

export interface ForeignLinkProps {
  readonly address: string
  readonly text: string
  /** The link as it was written: shown instead where the address cannot be opened. */
  readonly raw: string
}

export function ForeignLink({ address, text, raw }: ForeignLinkProps): ReactNode {
  const [asked, setAsked] = useState(false)
  const target = webAddress(address)
  if (target === undefined) return <Text>{raw}</Text>
  const bare = text === address || text === target
  return (
    <>
      <button type="button" className="inline text-left break-all text-accent-strong underline" onClick={() => setAsked(true)}>
        <Text>{bare ? target : text}</Text>
        {!bare && (
          <span className="text-muted">
            {' ('}
            <Text>{target}</Text>)
          </span>
        )}
      </button>
      {asked && (
        <Dialog label="Leave the console" close={() => setAsked(false)}>
          <div className="space-y-3 p-5">
            <h2 className="text-[1.14rem] font-semibold">Open this address?</h2>
            <p className="code break-all">
              <Text>{target}</Text>
            </p>
            <p className="text-muted">
              The link comes from the model or a server. It opens in a new tab, which does not learn where it came from.
            </p>
            <div className="flex justify-end gap-2">
              <Button onClick={() => setAsked(false)}>Stay here</Button>
              <a
                href={target}
                target="_blank"
                rel="noopener noreferrer"
                onClick={() => setAsked(false)}
                className="inline-flex min-h-8 items-center rounded-md bg-accent px-3 py-1 font-medium text-on-accent hover:bg-accent-strong"
              >
                Open
              </a>
            </div>
          </div>
        </Dialog>
      )}
    </>
  )
}

/** The address as the browser would go there; undefined unless it is one of the web. */
function webAddress(address: string): string | undefined {
  const url = URL.parse(address)
  return url !== null && /^https?:$/.test(url.protocol) ? url.href : undefined
}
