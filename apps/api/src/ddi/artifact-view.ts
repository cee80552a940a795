import type { ArtifactFacts } from "@ota/domain";

/** A firmware's file as DDI has it; without `baseUrl`, one that the device may not fetch now. */
export function artifactView(
  { fileName, sizeBytes, sha1, md5, sha256 }: ArtifactFacts,
  { firmwareId, baseUrl }: { readonly firmwareId: string; readonly baseUrl: string | undefined },
): object {
  // On this host alone: clients send their token wherever a link leads.
  const href = `${baseUrl}/softwaremodules/${firmwareId}/artifacts/${encodeURIComponent(fileName)}`;
  const sum = { href: `${href}.MD5SUM` };
  return {
    filename: fileName,
    size: sizeBytes,
    hashes: { ...(sha1 === null ? {} : { sha1 }), ...(md5 === null ? {} : { md5 }), sha256 },
    // Under both names, since some clients know only the one, and some only the other.
    _links:
      baseUrl === undefined
        ? {}
        : {
            download: { href },
            "download-http": { href },
            ...(md5 === null ? {} : { md5sum: sum, "md5sum-http": sum }),
          },
  };
}
