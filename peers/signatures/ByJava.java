// What Java's libraries do with the signatures and hashes of made.py, as rows of a table.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.crypto.tink.subtle.Ed25519Verify;
import java.io.File;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Function;
import net.i2p.crypto.eddsa.EdDSAEngine;
import net.i2p.crypto.eddsa.EdDSAPublicKey;
import net.i2p.crypto.eddsa.spec.EdDSANamedCurveTable;
import net.i2p.crypto.eddsa.spec.EdDSAPublicKeySpec;
import org.apache.commons.codec.digest.Blake3;
import org.bouncycastle.crypto.digests.Blake3Digest;
import org.bouncycastle.crypto.params.Blake3Parameters;
import org.bouncycastle.crypto.params.Ed25519PublicKeyParameters;
import org.bouncycastle.crypto.signers.Ed25519Signer;
import org.web3j.crypto.StructuredDataEncoder;
import org.web3j.utils.Numeric;

public class ByJava {
    interface Check {
        boolean holds(byte[] key, byte[] message, byte[] signature) throws Exception;
    }

    static JsonNode known, vectors;

    static byte[] raw(JsonNode made, String part) {
        return HexFormat.of().parseHex(made.get(part).asText());
    }

    static void row(String tool, String what, String did) {
        System.out.println("| " + tool + " (Java) | " + what + " | " + did + " |");
    }

    static String accepted(Check check) {
        List<String> names = new ArrayList<>();
        for (String name : List.of("plain", "mixed R", "mixed key")) {
            JsonNode made = known.get("ed25519").get(name);
            try {
                if (check.holds(raw(made, "key"), raw(made, "message"), raw(made, "signature"))) names.add(name);
            } catch (Exception refused) {
                // Tink says by an exception that a signature does not hold.
            }
        }
        return "accepts " + String.join(", ", names);
    }

    static String derived(Function<byte[], byte[]> derive) {
        for (var one : known.get("derived").properties()) {
            byte[] content = new byte[Integer.parseInt(one.getKey())];
            Arrays.fill(content, (byte) 7);
            if (!HexFormat.of().formatHex(derive.apply(content)).equals(one.getValue().asText())) return "derives other keys";
        }
        return "derives the same keys";
    }

    static boolean byBouncy(byte[] key, byte[] message, byte[] signature) {
        var verifier = new Ed25519Signer();
        verifier.init(false, new Ed25519PublicKeyParameters(key, 0));
        verifier.update(message, 0, message.length);
        return verifier.verifySignature(signature);
    }

    static boolean byJdk(byte[] key, byte[] message, byte[] signature) throws Exception {
        byte[] encoded = HexFormat.of().parseHex("302a300506032b6570032100" + HexFormat.of().formatHex(key));
        var verifier = Signature.getInstance("Ed25519");
        verifier.initVerify(KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded)));
        verifier.update(message);
        return verifier.verify(signature);
    }

    static boolean byI2p(byte[] key, byte[] message, byte[] signature) throws Exception {
        var verifier = new EdDSAEngine(MessageDigest.getInstance("SHA-512"));
        verifier.initVerify(new EdDSAPublicKey(new EdDSAPublicKeySpec(key, EdDSANamedCurveTable.getByName("Ed25519"))));
        verifier.update(message);
        return verifier.verify(signature);
    }

    static boolean byTink(byte[] key, byte[] message, byte[] signature) throws Exception {
        new Ed25519Verify(key).verify(signature, message);
        return true;
    }

    static byte[] byCodec(byte[] content) {
        byte[] key = new byte[32];
        Blake3.initKeyDerivationFunction(known.get("context").asText().getBytes()).update(content).doFinalize(key);
        return key;
    }

    static byte[] byBouncyDigest(byte[] content) {
        byte[] key = new byte[32];
        var digest = new Blake3Digest();
        digest.init(Blake3Parameters.context(known.get("context").asText().getBytes()));
        digest.update(content, 0, content.length);
        digest.doFinal(key, 0);
        return key;
    }

    static byte[] byBlake3(byte[] content) {
        var hasher = io.github.rctcwyvrn.blake3.Blake3.newKeyDerivationHasher(known.get("context").asText());
        hasher.update(content);
        return hasher.digest();
    }

    static String hashed() throws Exception {
        int right = 0;
        for (JsonNode one : vectors) {
            byte[] hash = new StructuredDataEncoder(one.get("typed_data").toString()).hashStructuredData();
            if (Numeric.toHexString(hash).equals(one.get("hash").asText())) right++;
        }
        return "hashes " + right + " of " + vectors.size() + " right";
    }

    public static void main(String[] paths) throws Exception {
        known = new ObjectMapper().readTree(new File(paths[0]));
        vectors = new ObjectMapper().readTree(new File(paths[1]));
        row("Bouncy Castle 1.87", "Ed25519", accepted(ByJava::byBouncy));
        row("JDK " + Runtime.version().feature(), "Ed25519", accepted(ByJava::byJdk));
        row("net.i2p.crypto:eddsa 0.3.0", "Ed25519", accepted(ByJava::byI2p));
        row("Tink 1.17.0", "Ed25519", accepted(ByJava::byTink));
        row("commons-codec 1.23.0", "BLAKE3 `derive_key`", derived(ByJava::byCodec));
        row("Bouncy Castle 1.87", "BLAKE3 `derive_key`", derived(ByJava::byBouncyDigest));
        row("io.github.rctcwyvrn:blake3 1.3", "BLAKE3 `derive_key`", derived(ByJava::byBlake3));
        row("web3j 4.14.0", "typed data", hashed());
    }
}
